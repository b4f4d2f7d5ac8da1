package approval

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// Limits of the code that is shown around a call.
const (
	linesAround  = 3
	maxCodeLines = 40
	maxLineWidth = 160 // characters
)

// renderCode shows the lines that make the call, as far as they are known: the line claimed by the
// client inside the sandbox, marked, and the lines that seem to name the tool. This is a hint, not
// proof: the code could have built the name at run time, repeated it elsewhere, or made the client
// claim another line. Only the tool and the arguments are proven.
func renderCode(b *strings.Builder, q Question, c cut) {
	most := maxCodeLines
	if !c.isWhole() {
		most = c.code
	}
	if q.Code == "" || most == 0 {
		return
	}
	if canon.Digest([]byte(q.Code)) != q.CodeHash {
		b.WriteString("\nthe code around it:\n  (not shown: it is not the code that runs)\n")
		return
	}
	e := excerptOf(strings.Split(strings.TrimSuffix(q.Code, "\n"), "\n"), q, most)
	switch {
	case e.claimed > 0 && e.named[e.claimed-1]:
		b.WriteString("\nthe code around it; > marks the line that makes the call, as the code's own client says:\n")
	case e.claimed > 0:
		b.WriteString("\nthe code around it; > marks the line that makes the call, as the code's own client says. " +
			"That line does not name the tool:\n")
	default:
		b.WriteString("\nthe code that names the tool; which line makes the call is not known:\n")
	}
	e.write(b, squash(q.ToolName))
}

// excerpt holds the lines of a program that are shown.
type excerpt struct {
	lines   []string
	show    []bool
	named   []bool // the line seems to name the tool
	claimed int    // the line that makes the call, from 1; 0 for none
}

func excerptOf(lines []string, q Question, most int) excerpt {
	e := excerpt{lines: lines, show: make([]bool, len(lines)), named: make([]bool, len(lines))}
	if 0 < q.ClaimedLine && q.ClaimedLine <= len(lines) {
		e.claimed = q.ClaimedLine
	}
	shown := 0
	add := func(from, to int) {
		for i := max(0, from); i <= min(len(lines)-1, to) && shown < most; i++ {
			if !e.show[i] {
				e.show[i] = true
				shown++
			}
		}
	}
	tool, any := squash(q.ToolName), false
	for i, line := range lines {
		e.named[i] = tool != "" && strings.Contains(squash(line), tool)
		any = any || e.named[i]
	}
	if e.claimed > 0 { // before lines that only look like the call
		add(e.claimed-1, e.claimed-1)
		add(e.claimed-1-linesAround, e.claimed-1+linesAround)
	}
	for i := range lines {
		if e.named[i] {
			add(i-linesAround, i+linesAround)
		}
	}
	if !any && e.claimed == 0 {
		add(0, len(lines)-1)
	}
	return e
}

func (e excerpt) write(b *strings.Builder, tool string) {
	skipped := 0
	gap := func() {
		if skipped > 0 {
			fmt.Fprintf(b, "       … %s lines …\n", count(skipped))
		}
		skipped = 0
	}
	for i, line := range e.lines {
		if !e.show[i] {
			skipped++
			continue
		}
		gap()
		mark := " "
		if i+1 == e.claimed {
			mark = ">"
		}
		fmt.Fprintf(b, "%s %4d %s\n", mark, i+1, clipLine(showCodeLine(line), tool))
	}
	gap()
}

// showCodeLine makes a line of code safe to read. It keeps normal indentation.
func showCodeLine(line string) string {
	rest := strings.TrimLeft(line, " \t")
	indentation := line[:len(line)-len(rest)]
	if len(indentation) > maxLineWidth/2 {
		indentation = fmt.Sprintf(`\u{20}×%s `, count(len(indentation)))
	}
	return indentation + showRunesOfCode(rest)
}

func showRunesOfCode(text string) string { return showRunes([]rune(markBytes(text)), false) }

// clipLine shortens a line to the maximum width, and keeps the part that names the tool.
func clipLine(line, tool string) string {
	runes := []rune(line)
	if len(runes) <= maxLineWidth {
		return line
	}
	at := nameAt(runes, tool)
	const window, head = 100, 40
	if at < maxLineWidth-head {
		return string(runes[:maxLineWidth]) + fmt.Sprintf("…[%s characters in all]", count(len(runes)))
	}
	from := at - window/4
	to := min(len(runes), from+window)
	return string(runes[:head]) + fmt.Sprintf("…[from character %s of %s]…", count(from+1), count(len(runes))) + string(
		runes[from:to]) + "…"
}

// nameAt returns the position in a line at which its last letters or digits equal the tool's name,
// or 0 without a match.
func nameAt(line []rune, tool string) int {
	if tool == "" {
		return 0
	}
	var letters []rune
	var at []int
	for i, r := range line {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			letters = append(letters, unicode.ToLower(r))
			at = append(at, i)
		}
	}
	i := strings.LastIndex(string(letters), tool)
	if i < 0 {
		return 0
	}
	return at[len([]rune(string(letters)[:i]))]
}

// squash makes delete_file, deleteFile and "delete-file" equal.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}
