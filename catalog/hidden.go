package catalog

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuoted is how many characters of a stranger's text a message shows.
const maxQuoted = 80

// Quote writes a stranger's text into a message: in quotes, cut to 80
// characters, and with everything but printable ASCII escaped.
func Quote(text string) string {
	if utf8.RuneCountInString(text) > maxQuoted {
		text = string([]rune(text)[:maxQuoted]) + "..."
	}
	return strconv.QuoteToASCII(text)
}

// Visible returns text without the characters that cannot be seen or that
// reorder what is seen, as Clean does, but without a note and without judging
// what the text says.
func Visible(text string) string {
	visible, _ := stripHidden(text)
	return visible
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
		b.WriteRune(c)
		last = c
	}
	return b.String(), hidden
}

func isLayout(c rune) bool { return c == '\n' || c == '\t' || c == '\r' }

// isHidden reports whether c leaves no mark on a screen or changes the order of
// what is shown: control and format characters, tags, variation selectors,
// fillers, private use and noncharacters (Unicode 16, Default_Ignorable_Code_Point
// and General_Category Cc, Cf, Co, Zl, Zp).
func isHidden(c rune) bool {
	switch {
	case c < ' ':
		return !isLayout(c)
	case c < 0x7F:
		return false
	case unicode.IsControl(c), unicode.Is(unicode.Co, c), unicode.Is(unicode.Zl, c), unicode.Is(unicode.Zp, c):
		return true
	case c >= 0x0600 && c <= 0x08FF:
		return c == 0x061C // the other format characters of Arabic and Syriac are visible signs
	case unicode.Is(unicode.Cf, c):
		return c != 0x110BD && c != 0x110CD // number signs, visible too
	case unicode.Is(unicode.Noncharacter_Code_Point, c), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, c):
		return true
	}
	return unicode.Is(unicode.Variation_Selector, c)
}

// isJoined reports whether c is one of the three invisible characters that
// honest text needs, in the place where it needs them: the emoji and text
// presentation selectors behind a symbol, and the joiners between letters of
// scripts that join, or between the parts of one emoji.
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
	return c > 0x7F && (unicode.Is(unicode.So, c) || unicode.Is(unicode.Sm, c) || unicode.Is(unicode.Sk, c) || unicode.Is(unicode.Po, c))
}

// joins reports whether c belongs to a script in which joiners change how
// letters look.
func joins(c rune) bool {
	return c >= 0x0600 && unicode.In(c, unicode.Arabic, unicode.Syriac, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
		unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
		unicode.Khmer, unicode.Myanmar, unicode.Mongolian)
}
