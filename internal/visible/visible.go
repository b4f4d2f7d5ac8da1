// Package visible makes untrusted text safe to print on a terminal or to
// show to a person who decides by it: what could hide, move or imitate other
// characters is written as an escape, and nothing else is changed.
package visible

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/truncate"
)

// Text returns s on one line, with every character that leaves no mark of its
// own written as \n, \t, \r or \u{…}: control and format characters (bidi
// overrides, zero-width ones, tags), variation selectors, fillers, line separators,
// spaces other than the plain one, private use, unassigned ones, and bytes that
// are not UTF-8 as \x…. A backslash is doubled, so that no text can imitate an escape.
func Text(s string) string { return escape(s, lineBreaks|backslashes) }

// Line is Text with single backslashes. It is for messages that quote patterns or
// code, if no decision depends on an imitated escape.
func Line(s string) string { return escape(s, lineBreaks) }

// Lines is Text for text of several lines, such as code: line breaks and tabs
// stay, and so do single backslashes.
func Lines(s string) string { return escape(s, 0) }

// Clip is Text cut to at most n characters, with a mark at the cut.
func Clip(s string, n int) string {
	return truncate.Characters(Text(s), n)
}

// escaped shows what is escaped beside invisible characters.
type escaped int

const (
	lineBreaks  escaped = 1 << iota // and tabs
	backslashes                     // doubled
)

func escape(s string, also escaped) string {
	if plain(s, also) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\\' && also&backslashes != 0:
			b.WriteString(`\\`)
		case (r == '\n' || r == '\t') && also&lineBreaks == 0, Is(r):
			b.WriteRune(r)
		default:
			b.WriteString(name(r))
		}
		i += size
	}
	return b.String()
}

func plain(s string, also escaped) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7F || (also&backslashes != 0 && s[i] == '\\') {
			return false
		}
	}
	return true
}

func name(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	}
	return fmt.Sprintf(`\u{%x}`, r)
}
