// Package visible makes a stranger's text safe to print on a terminal or to
// show to a person who decides by it: what could hide, move or imitate other
// characters is written as an escape, and nothing else is changed.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s on one line, with every character that leaves no mark of its
// own written as \n, \t, \r or \u{…}: control and format characters (bidi
// overrides, zero-width ones, tags), variation selectors, fillers, line separators,
// spaces other than the plain one, private use, unassigned ones, and bytes that
// are no UTF-8 as \x…. A backslash is doubled, so that no text can imitate an escape.
func Text(s string) string { return escape(s, true) }

// Lines is Text for text of several lines, such as code: line breaks and tabs
// stay, and so do single backslashes.
func Lines(s string) string { return escape(s, false) }

// Clip is Text cut to at most n characters, with a mark where it was cut.
func Clip(s string, n int) string {
	text := Text(s)
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:max(0, n-1)]) + "…"
}

func escape(s string, oneLine bool) string {
	if plain(s, oneLine) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\\' && oneLine:
			b.WriteString(`\\`)
		case (r == '\n' || r == '\t') && !oneLine, isVisible(r):
			b.WriteRune(r)
		default:
			b.WriteString(name(r))
		}
		i += size
	}
	return b.String()
}

func plain(s string, oneLine bool) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7F || (oneLine && s[i] == '\\') {
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

// isVisible says whether a character shows as itself (Unicode general
// categories L, M, N, P, S), leaving out those of them that are ignorable by default.
func isVisible(r rune) bool {
	if r == ' ' {
		return true
	}
	if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) {
		return false
	}
	return !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
