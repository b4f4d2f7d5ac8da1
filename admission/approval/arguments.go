package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/visible"
)

// showArguments formats arguments over several lines. Strings are shown decoded, as the server will
// read them, and characters that a reader could overlook are written as escapes: see showText.
// Names and their order are kept.
func showArguments(arguments json.RawMessage, c cut) string {
	in := json.NewDecoder(bytes.NewReader(arguments))
	in.UseNumber()
	l := &layout{cut: c, in: in, source: arguments}
	if err := l.value(0); err != nil || in.More() {
		return visible.Lines(string(arguments))
	}
	return l.out.String()
}

// layout writes one JSON text, token by token.
type layout struct {
	cut    cut
	in     *json.Decoder
	source []byte
	out    strings.Builder
	muted  int // above 0 while tokens are omitted
}

// maxIndent is the maximum number of indentation levels shown.
const maxIndent = 30

func (l *layout) write(text string) {
	if l.muted == 0 {
		l.out.WriteString(text)
	}
}

func (l *layout) line(depth int) { l.write("\n" + strings.Repeat("  ", min(depth, maxIndent))) }

// value writes the next value.
func (l *layout) value(depth int) error {
	token, raw, err := l.next()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		return l.nested(token, depth)
	case string:
		l.text(raw)
	default:
		l.shortened(string(raw), len(raw))
	}
	return nil
}

// next returns the next token with its bytes in the source.
func (l *layout) next() (json.Token, []byte, error) {
	before := l.in.InputOffset()
	token, err := l.in.Token()
	if err != nil {
		return nil, nil, err
	}
	return token, bytes.TrimLeft(l.source[before:l.in.InputOffset()], " \t\r\n,:"), nil
}

// nested writes the members of an object or the items of a list.
func (l *layout) nested(open json.Delim, depth int) error {
	end := map[json.Delim]string{'{': "}", '[': "]"}[open]
	l.write(open.String())
	n := 0
	for ; l.in.More(); n++ {
		hidden := l.cut.items > 0 && n >= l.cut.items
		if hidden && n == l.cut.items {
			l.line(depth + 1)
			l.write("…")
		}
		if hidden {
			l.muted++
		}
		l.line(depth + 1)
		if open == '{' {
			_, raw, err := l.next()
			if err != nil {
				return err
			}
			l.text(raw)
			l.write(": ")
		}
		if err := l.value(depth + 1); err != nil {
			return err
		}
		if l.in.More() && !hidden {
			l.write(",")
		}
		if hidden {
			l.muted--
		}
	}
	if _, err := l.in.Token(); err != nil {
		return err
	}
	if hidden := n - l.cut.items; l.cut.items > 0 && hidden > 0 {
		l.write(fmt.Sprintf(" %s more of %s …", count(hidden), count(n)))
	}
	if n > 0 {
		l.line(depth)
	}
	l.write(end)
	if what := map[json.Delim]string{'{': "members", '[': "items"}[open]; n >= manyItems {
		l.write(fmt.Sprintf("  (%s %s)", count(n), what))
	}
	return nil
}

// manyItems is the length from which the number of items of a list is shown.
const manyItems = 20

// text writes a JSON string from its source.
func (l *layout) text(raw []byte) {
	if l.muted > 0 {
		return
	}
	shown := showString(raw)
	l.shortened(shown, utf8.RuneCountInString(shown)-len(`""`))
}

// shortened writes a string or a number with this many characters, shortened if needed.
func (l *layout) shortened(shown string, characters int) {
	runes := []rune(shown)
	most := l.cut.text
	if l.muted > 0 || most == 0 || len(runes) <= most {
		l.write(shown)
		return
	}
	head := most * 2 / 3
	l.write(string(runes[:head]) + fmt.Sprintf("…[%s characters in all]…", count(characters)) + string(
		runes[len(runes)-(most-head):]))
}
