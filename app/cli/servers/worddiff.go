package servers

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
)

// Lengths in characters.
const (
	longLine    = 160     // of a longer line, only the changes are shown
	around      = 40      // of unchanged text on each side of a change
	maxCompared = 4 << 20 // pairs of words; a larger text counts as completely changed
)

// The marks of a diff. The text of a server is shown in ASCII, so it cannot contain them.
const (
	leftOut      = "…"
	changeBegins = "⟦"
	changeEnds   = "⟧"
)

// condense shortens a unified diff. Of a long line that was replaced, it keeps the words that
// changed and some text around them. Of a long line that did not change, it keeps the beginning.
// It never removes a change.
func condense(unified []byte, paint verb.Painter) []byte {
	var out bytes.Buffer
	var removed, added []string
	flush := func() {
		for i, line := range removed {
			if i < len(added) && (len(line) > longLine || len(added[i]) > longLine) {
				removed[i], added[i] = changedWords(line, added[i], paint)
			}
		}
		for _, line := range removed {
			out.WriteString(paint.Paint(verb.Red, "-"+line) + "\n")
		}
		for _, line := range added {
			out.WriteString(paint.Paint(verb.Green, "+"+line) + "\n")
		}
		removed, added = nil, nil
	}
	header := true // until the first hunk
	for line := range strings.Lines(string(unified)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
			header = false
			out.WriteString(paint.Paint(verb.Cyan, line) + "\n")
		case header:
			out.WriteString(paint.Paint(verb.Bold, line) + "\n")
		case strings.HasPrefix(line, "-"):
			if len(added) > 0 {
				flush()
			}
			removed = append(removed, line[1:])
		case strings.HasPrefix(line, "+"):
			added = append(added, line[1:])
		default:
			flush()
			if len(line) > longLine {
				line = fmt.Sprintf("%s%s (%d characters, unchanged)", line[:longLine/2], leftOut, len(line))
			}
			out.WriteString(line + "\n")
		}
	}
	flush()
	return out.Bytes()
}

// changedWords returns two lines with the differences marked. Of equal text, only the part next to
// a difference is kept.
func changedWords(before, after string, paint verb.Painter) (string, string) {
	old, current := words(before), words(after)
	keptOld, keptNew := common(old, current)
	return marked(old, keptOld, paint), marked(current, keptNew, paint)
}

// Words splits text after every run of letters and digits, and after every other character.
func words(text string) []string {
	var found []string
	start := 0
	for i := range len(text) {
		if i > start && (!isWord(text[i]) || !isWord(text[i-1])) {
			found = append(found, text[start:i])
			start = i
		}
	}
	if start < len(text) {
		found = append(found, text[start:])
	}
	return found
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '\\'
}

// common reports for each word whether it belongs to a longest common subsequence.
func common(a, b []string) (inA, inB []bool) {
	inA, inB = make([]bool, len(a)), make([]bool, len(b))
	first, lastA, lastB := 0, len(a), len(b)
	for first < lastA && first < lastB && a[first] == b[first] {
		inA[first], inB[first] = true, true
		first++
	}
	for lastA > first && lastB > first && a[lastA-1] == b[lastB-1] {
		lastA, lastB = lastA-1, lastB-1
		inA[lastA], inB[lastB] = true, true
	}
	n, m := lastA-first, lastB-first
	if n == 0 || m == 0 || n*m > maxCompared {
		return inA, inB
	}
	length := make([][]int32, n+1) // of the longest common subsequence of a[first+i:] and b[first+j:]
	for i := range length {
		length[i] = make([]int32, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if a[first+i] == b[first+j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case a[first+i] == b[first+j]:
			inA[first+i], inB[first+j] = true, true
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return inA, inB
}

// marked joins words. It marks the words that are not kept, and shortens long runs of kept words.
func marked(text []string, kept []bool, paint verb.Painter) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && kept[end] == kept[i] {
			end++
		}
		run := strings.Join(text[i:end], "")
		switch {
		case !kept[i]:
			out.WriteString(paint.Paint(verb.Invert, changeBegins+run+changeEnds))
		case len(run) <= 2*around+len(leftOut):
			out.WriteString(run)
		case i == 0: // the beginning has the name of the member
			out.WriteString(run[:around] + leftOut + run[len(run)-around:])
		case end == len(text):
			out.WriteString(run[:around] + leftOut)
		default:
			out.WriteString(run[:around] + leftOut + run[len(run)-around:])
		}
		i = end
	}
	return out.String()
}
