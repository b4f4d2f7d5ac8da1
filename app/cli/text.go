package cli

import (
	"strings"

	"github.com/airlock-mcp/airlock/internal/truncate"
)

// wrapped breaks text into lines of at most room characters, between words if possible. If room is
// not positive, the length of lines is not limited.
func wrapped(text string, room int) []string {
	if room <= 0 {
		return []string{text}
	}
	var lines []string
	line := []rune(text)
	for len(line) > room {
		at := room
		for i := room; i > 0; i-- {
			if line[i] == ' ' {
				at = i
				break
			}
		}
		lines = append(lines, string(line[:at]))
		line = []rune(strings.TrimLeft(string(line[at:]), " "))
	}
	return append(lines, string(line))
}

// oneLine folds white space and control characters, and cuts text to at most limit characters. It
// is used for the cells of tables.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' }), " ")
	return truncate.Characters(text, limit)
}
