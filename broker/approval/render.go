package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// How much of the code is shown around what looks like the call.
const (
	linesAround  = 3
	maxCodeLines = 40
	maxLineWidth = 160
)

// Write shows a question as a person must see it before they answer: everything
// the answer is bound to, with control and invisible characters made visible.
func Write(w io.Writer, q Question) error {
	_, err := io.WriteString(w, Text(q))
	return err
}

// Text is what Write writes.
func Text(q Question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "May this call happen?  %s\n\n", visible.Text(q.ID))
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-11s %s\n", name, visible.Text(value))
		}
	}
	field("server", q.ServerID)
	field("tool", q.ToolName)
	field("risk", q.Risk)
	for _, flag := range q.Flags {
		field("flagged", flag)
	}
	field("for", q.Principal)
	field("vouched by", q.Issuer)
	field("asked by", strings.Join(q.Rules, "; "))
	field("expires", q.Expires.UTC().Format(time.RFC3339))
	field("run", q.RunID)
	field("definition", q.DefinitionDigest)
	field("code", q.CodeHash)
	b.WriteString("\narguments, complete:\n")
	indent(&b, visible.Lines(pretty(q.Arguments)))
	if text := code(q); text != "" {
		b.WriteString("\nthe code around it:\n")
		b.WriteString(text)
	}
	return b.String()
}

// pretty lays the arguments out without changing a character of their values.
func pretty(arguments json.RawMessage) string {
	var out bytes.Buffer
	if err := json.Indent(&out, arguments, "", "  "); err != nil {
		return string(arguments)
	}
	return out.String()
}

func indent(b *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		b.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
	}
}

// code shows the lines that seem to name the tool. It is help, not proof: the
// code could have built the name. What is proven are tool and arguments.
func code(q Question) string {
	if q.Code == "" {
		return ""
	}
	if canon.Digest([]byte(q.Code)) != q.CodeHash {
		return "  (not shown: it is not the code that runs)\n"
	}
	lines := strings.Split(strings.TrimSuffix(q.Code, "\n"), "\n")
	show := make([]bool, len(lines))
	found := false
	for i, line := range lines {
		if strings.Contains(squash(line), squash(q.ToolName)) {
			found = true
			for j := max(0, i-linesAround); j <= min(len(lines)-1, i+linesAround); j++ {
				show[j] = true
			}
		}
	}
	var b strings.Builder
	shown, skipped := 0, false
	for i, line := range lines {
		if (found && !show[i]) || shown == maxCodeLines {
			skipped = true
			continue
		}
		if skipped {
			b.WriteString("       …\n")
			skipped = false
		}
		fmt.Fprintf(&b, "  %4d %s\n", i+1, truncate.Characters(visible.Lines(line), maxLineWidth))
		shown++
	}
	if skipped {
		b.WriteString("       …\n")
	}
	return b.String()
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
