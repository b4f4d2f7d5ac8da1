package catalog

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// maxQuoted is how many characters of untrusted text a message shows.
const maxQuoted = 80

// Quote writes untrusted text into a message: in quotes, cut to 80
// characters, and with everything but printable ASCII escaped.
func Quote(text string) string { return QuoteUpTo(text, maxQuoted) }

// QuoteUpTo is Quote for another number of characters.
func QuoteUpTo(text string, most int) string {
	if shown := truncate.Characters(text, most+1); shown != text {
		text = strings.TrimSuffix(shown, "…") + "..."
	}
	return strconv.QuoteToASCII(text)
}

// Visible returns text without invisible and reordering characters. Unlike Clean, it adds
// no note and does not check for prompt injection.
func Visible(text string) string {
	shown, _ := stripHidden(text)
	return shown
}

// stripHidden removes the characters that a person does not see but a model
// reads, and returns how many there were.
func stripHidden(text string) (string, int) {
	clean := true
	for i := 0; i < len(text) && clean; i++ {
		clean = text[i] < utf8.RuneSelf && text[i] != 0x7F && (text[i] >= ' ' || isLayout(rune(text[i])))
	}
	if clean {
		return text, 0
	}
	var b strings.Builder
	hidden := 0
	last := ' '
	for i, c := range text {
		if isHidden(c) && !isJoined(last, c, text[i+utf8.RuneLen(c):]) {
			hidden++
			if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' {
				b.WriteByte(' ') // they separated words
			}
			continue
		}
		if visible.IsBlank(c) {
			c = ' '
		}
		b.WriteRune(c)
		last = c
	}
	return b.String(), hidden
}

func isLayout(c rune) bool { return c == '\n' || c == '\t' || c == '\r' }

// isHidden reports whether c is invisible or changes the order of displayed text. Blanks
// do not count: stripHidden replaces them with spaces.
func isHidden(c rune) bool {
	return !isLayout(c) && !visible.Is(c) && !visible.IsBlank(c)
}

// isJoined reports whether c is a legitimate use of one of the invisible characters that
// ordinary text needs: an emoji or text presentation selector after a symbol, or a joiner
// between letters of a joining script or between the parts of one emoji.
func isJoined(last, c rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	switch c {
	case '\uFE0E', '\uFE0F':
		return isSymbol(last) || next == '\u20E3' // keycaps: 1️⃣
	case '\u200D':
		return (isSymbol(last) || last == '\uFE0F') && isSymbol(next) || joins(last) && joins(next)
	case '\u200C':
		return joins(last) && joins(next)
	}
	return false
}

func isSymbol(c rune) bool {
	return c > 0x7F && (unicode.Is(unicode.So, c) || unicode.Is(unicode.Sm, c) || unicode.Is(unicode.Sk, c) ||
		unicode.Is(unicode.Po, c))
}

// joins reports whether c belongs to a script in which joiners change how
// letters look.
func joins(c rune) bool {
	return c >= 0x0600 && unicode.In(c, unicode.Arabic, unicode.Syriac, unicode.Devanagari, unicode.Bengali,
		unicode.Gurmukhi,
		unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam,
		unicode.Sinhala,
		unicode.Khmer, unicode.Myanmar, unicode.Mongolian)
}
