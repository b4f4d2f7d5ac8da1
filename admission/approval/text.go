package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"strconv"

	"github.com/airlock-mcp/airlock/internal/visible"
)

// Limits beyond which characters are written as escapes.
const (
	maxSpaces = 8 // consecutive, between other characters of a text
	maxMarks  = 3 // combining marks on one character
)

// showName shows a text that is not JSON, such as a name.
func showName(s string) string { return showRunes([]rune(markBytes(s)), true) }

// markBytes makes bytes visible that are not UTF-8.
func markBytes(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return visible.Lines(s)
}

// showString shows a JSON string from its source, in quotes. Escapes that only hide a character are
// decoded first. The remaining escapes cannot be mistaken for characters: JSON has no \u{…}.
func showString(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return visible.Lines(string(raw))
	}
	var out strings.Builder
	var run []rune
	flush := func() {
		out.WriteString(showRunes(run, false))
		run = run[:0]
	}
	for body := raw[1 : len(raw)-1]; len(body) > 0; {
		r, escape, size := nextRune(body)
		body = body[size:]
		if escape == "" {
			run = append(run, r)
			continue
		}
		flush()
		out.WriteString(escape)
	}
	flush()
	return `"` + out.String() + `"`
}

// nextRune reads one character of a JSON string. escape is its fixed representation, if it has one.
func nextRune(body []byte) (r rune, escape string, size int) {
	if body[0] != '\\' || len(body) < 2 {
		r, size = utf8.DecodeRune(body)
		if r == utf8.RuneError && size == 1 {
			return 0, fmt.Sprintf(`\x%02x`, body[0]), 1
		}
		return r, "", size
	}
	if body[1] == '/' {
		return '/', "", 2
	}
	if body[1] != 'u' {
		return 0, string(body[:2]), 2
	}
	r, ok := hexRune(body)
	if !ok {
		return 0, string(body[:min(6, len(body))]), min(6, len(body))
	}
	size = 6
	if utf16.IsSurrogate(r) {
		low, ok := hexRune(body[size:])
		pair := utf16.DecodeRune(r, low)
		if !ok || pair == utf8.RuneError {
			return 0, string(body[:size]), size // a lone surrogate is not a character
		}
		r, size = pair, 12
	}
	switch r {
	case '"', '\\':
		return 0, `\` + string(r), size
	}
	return r, "", size
}

// hexRune reads \uXXXX.
func hexRune(body []byte) (rune, bool) {
	if len(body) < 6 || body[0] != '\\' || body[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(body[2:6]), 16, 16)
	return rune(n), err == nil
}

// showRunes makes characters visible that could mislead a reader: invisible ones, long runs of
// spaces, letters that imitate others, and stacked marks. If backslashes is set, a backslash is
// doubled, as JSON would.
func showRunes(text []rune, backslashes bool) string {
	var b strings.Builder
	marks := 0
	foreign := foreignLetters(text)
	for i := 0; i < len(text); i++ {
		r := text[i]
		if n := spacesAt(text[i:]); n > maxSpaces {
			fmt.Fprintf(&b, `\u{20}×%s`, count(n))
			i += n - 1
			continue
		}
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == '\\' && backslashes:
			b.WriteString(`\\`)
		case imitates(r) || foreign[i] || marks > maxMarks:
			fmt.Fprintf(&b, `\u{%x}`, r)
		case r == '\\':
			b.WriteRune(r)
		default:
			b.WriteString(visible.Line(string(r)))
		}
	}
	return b.String()
}

func spacesAt(text []rune) int {
	n := 0
	for n < len(text) && text[n] == ' ' {
		n++
	}
	return n
}

// foreignLetters finds letters that do not belong to the script of their word, if the word is Latin
// and their script has letters that look like Latin ones.
func foreignLetters(text []rune) map[int]bool {
	var found map[int]bool
	for i := 0; i < len(text); {
		if !inWord(text[i]) {
			i++
			continue
		}
		start, latin := i, false
		for ; i < len(text) && inWord(text[i]); i++ {
			latin = latin || unicode.Is(unicode.Latin, text[i])
		}
		for j := start; latin && j < i; j++ {
			if unicode.In(text[j], lookalikes...) {
				if found == nil {
					found = map[int]bool{}
				}
				found[j] = true
			}
		}
	}
	return found
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// lookalikes are the scripts with letters that look like Latin ones.
var lookalikes = []*unicode.RangeTable{
	unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu, unicode.Deseret,
	unicode.Hebrew, unicode.Georgian,
}

// imitations are characters that look like ASCII characters.
var imitations = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x01c3, 0x01c3, 1},                      // a click that looks like an exclamation mark
		{0x0251, 0x0251, 1}, {0x0261, 0x0261, 1}, // phonetic a and g
		{0x037e, 0x037e, 1}, {0x0589, 0x0589, 1}, {0x05c3, 0x05c3, 1}, // Greek question mark, Armenian and Hebrew stops
		{0x2010, 0x2011, 1},                      // hyphens
		{0x2024, 0x2024, 1},                      // one dot leader
		{0x2044, 0x2044, 1}, {0x2212, 0x2212, 1}, // fraction slash, minus
		{0x2215, 0x2216, 1}, {0x2223, 0x2223, 1}, {0x2236, 0x2236, 1}, // division slash, set minus, divides, ratio
		{0x29f5, 0x29f5, 1}, {0x29f8, 0x29f9, 1}, // solidus and reverse solidus operators
		{0xa789, 0xa789, 1},                                           // modifier letter colon
		{0xfe52, 0xfe52, 1}, {0xfe55, 0xfe55, 1}, {0xfe68, 0xfe68, 1}, // small full stop, colon, reverse solidus
		{0xff01, 0xff5e, 1}, // the full-width forms of ASCII
	},
	R32: []unicode.Range32{{0x1d400, 0x1d7ff, 1}}, // mathematical alphanumerics
}

func imitates(r rune) bool { return unicode.Is(imitations, r) }
