package verb

import (
	"fmt"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Wrapped breaks text into lines of at most room characters, between words if possible. If room is
// not positive, the length of lines is not limited.
func Wrapped(text string, room int) []string {
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
		for line = line[at:]; len(line) > 0 && line[0] == ' '; {
			line = line[1:]
		}
	}
	return append(lines, string(line))
}

// OneLine folds white space and control characters, writes other characters that nobody sees as escapes, and cuts text
// to at most limit characters. It is used for the cells of tables.
func OneLine(text string, limit int) string {
	text = strings.Join(
		strings.FieldsFunc(text, func(r rune) bool {
			return r <= ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' ||
				r == '\u2029'
		}), " ")
	return truncate.Characters(visible.Line(text), limit)
}

// Counted returns a number with its noun, in the plural if needed.
func Counted(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ShowBytes returns a size with a unit, for people.
func ShowBytes(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// ShortBegan returns the local time to the second.
func ShortBegan(text string) string {
	began, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "-"
	}
	return began.Local().Format(time.DateTime)
}
