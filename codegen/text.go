package codegen

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/visible"
)

// This file is the only way for untrusted text into a generated file: as a
// literal of Python or JavaScript, inside a docstring or inside a JSDoc comment.
// It escapes invisible characters and characters that end a literal or comment.

// nextRune decodes the first character of WTF-8 text. A lone surrogate counts
// as a character; a byte that belongs to none becomes U+FFFD.
func nextRune(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 && len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, size
}

// appendWTF8 appends a character, a surrogate as three bytes.
func appendWTF8(b []byte, r rune) []byte {
	if 0xD800 <= r && r <= 0xDFFF {
		return append(b, 0xED, 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
	}
	return utf8.AppendRune(b, r)
}

// appendHidden appends the escape of an invisible character, valid in both
// languages below U+10000.
func appendHidden(b []byte, r rune, astral string) []byte {
	if r < 0x10000 {
		return fmt.Appendf(b, `\u%04x`, r)
	}
	return fmt.Appendf(b, astral, r)
}

const (
	pythonAstral = `\U%08x`
	nodeAstral   = `\u{%x}`
)

// plain returns how many bytes at the start of s are ordinary ASCII: visible,
// and nothing that a literal, docstring or comment may have to escape.
func plain(s string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ', c >= 0x7F, c == '"', c == '\\', c == '/', c == '@':
			return i
		}
	}
	return len(s)
}

// literal appends text as a double-quoted literal that stays on its line.
func literal(b []byte, text, astral string) []byte {
	b = escaped(append(b, '"'), text, '"', astral, func(b []byte, _ int, r, _ rune) ([]byte, bool) {
		switch r {
		case '"', '\\':
			return append(b, '\\', byte(r)), true
		case '\n':
			return append(b, '\\', 'n'), true
		}
		return b, false
	})
	return append(b, '"')
}

// escaped appends text. It offers each character that is not plain to special, with its
// offset in text and the previous character (before, at the start). If special does not
// handle it, it is appended unchanged if visible, and otherwise as its code.
func escaped(b []byte, text string, before rune, astral string,
	special func(b []byte, at int, r, previous rune) ([]byte, bool)) []byte {
	previous := before
	for i := 0; i < len(text); {
		if n := plain(text[i:]); n > 0 {
			b = append(b, text[i:i+n]...)
			previous = rune(text[i+n-1])
			i += n
			continue
		}
		r, size := nextRune(text[i:])
		taken := false
		switch b, taken = special(b, i, r, previous); {
		case taken:
		case visible.Is(r):
			b = utf8.AppendRune(b, r)
		default:
			b = appendHidden(b, r, astral)
		}
		previous = r
		i += size
	}
	return b
}

func pythonLiteral(text string) string { return string(literal(nil, text, pythonAstral)) }
func nodeLiteral(text string) string   { return string(literal(nil, text, nodeAstral)) }

// docstring appends text as a Python docstring whose lines begin with indent.
// Backslashes are doubled; a quotation mark beside another one or at the end
// is escaped, so that no two stand together and nothing ends the literal.
func docstring(b []byte, indent, text string) []byte {
	b = append(append(b, indent...), `"""`...)
	b = escaped(b, text, '"', pythonAstral, func(b []byte, i int, r, previous rune) ([]byte, bool) {
		switch {
		case r == '\n':
			b = append(b, '\n')
			if i+1 < len(text) && text[i+1] != '\n' {
				b = append(b, indent...)
			}
			return b, true
		case r == '\\':
			return append(b, `\\`...), true
		case r == '"' && (previous == '"' || i+1 == len(text) || text[i+1] == '"'):
			return append(b, `\"`...), true
		}
		return b, false
	})
	if strings.Contains(text, "\n") {
		b = append(append(b, '\n'), indent...)
	}
	return append(b, "\"\"\"\n"...)
}

// jsDoc appends text as a JSDoc comment whose lines begin with indent. The text cannot end
// the comment or form a tag: "*/" becomes "*\/", and "@" is escaped if a tag could begin
// there.
func jsDoc(b []byte, indent, text string) []byte {
	long := strings.Contains(text, "\n")
	b = append(append(b, indent...), "/** "...)
	if long {
		b = append(append(b[:len(b)-1], '\n'), indent...)
		b = append(b, " * "...)
	}
	b = escaped(b, text, '*', nodeAstral, func(b []byte, i int, r, previous rune) ([]byte, bool) {
		switch {
		case r == '\n':
			b = append(append(b, '\n'), indent...)
			b = append(b, " * "...)
			if i+1 == len(text) || text[i+1] == '\n' {
				b = b[:len(b)-1]
			}
			return b, true
		case r == '/' && previous == '*', r == '@' && strings.ContainsRune("\n *{", previous):
			return append(b, '\\', byte(r)), true
		}
		return b, false
	})
	if long {
		b = append(append(b, '\n'), indent...)
	}
	return append(b, " */\n"...)
}

func isASCIILetterOrDigit(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
