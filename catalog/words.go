package catalog

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxWordBytes is the maximum length of a word. Longer ones are treated as data.
const maxWordBytes = 64

// splitWords cuts text into lower-case words for search: at everything that is
// neither letter nor digit, between lower and upper case (camelCase, HTTPServer),
// and between letters and digits. Scripts written without spaces (Chinese,
// Japanese, Thai and their like) become overlapping pairs of characters.
// Common Latin diacritics are dropped, so that "Käärijä" meets "kaarija".
func splitWords(text string) []string {
	words := make([]string, 0, len(text)/6)
	var word []byte
	flush := func() {
		if len(word) > 0 && len(word) <= maxWordBytes {
			words = append(words, string(word))
		}
		word = word[:0]
	}
	var last rune // the character before the current one
	for i, c := range text {
		switch {
		case isDense(c):
			flush()
			if isDense(last) {
				words = append(words, string(last)+string(c))
			} else if next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(c):]); !isDense(next) {
				words = append(words, string(c)) // a lone one has no pair
			}
		case !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c):
			if c != '\'' && c != '’' || !unicode.IsLetter(last) {
				flush()
			}
		default:
			if startsWord(last, c, text[i+utf8.RuneLen(c):]) {
				flush()
			}
			if !unicode.IsMark(c) {
				word = utf8.AppendRune(word, plain(c))
			}
		}
		last = c
	}
	flush()
	return words
}

// startsWord reports whether a new word begins at c without a separator before it.
func startsWord(last, c rune, rest string) bool {
	switch {
	case unicode.IsDigit(c) != unicode.IsDigit(last) && (unicode.IsLetter(last) || unicode.IsDigit(last)):
		return true
	case unicode.IsUpper(c) && unicode.IsLower(last):
		return true
	case unicode.IsUpper(c) && unicode.IsUpper(last):
		next, _ := utf8.DecodeRuneInString(rest) // the S of HTTPServer
		return unicode.IsLower(next) && !isPluralEnd(rest)
	}
	return false
}

// isPluralEnd reports whether rest begins with the plural s of an acronym, as in "URLs".
func isPluralEnd(rest string) bool {
	if !strings.HasPrefix(rest, "s") {
		return false
	}
	next, _ := utf8.DecodeRuneInString(rest[1:])
	return !unicode.IsLower(next)
}

// isDense reports whether c belongs to a script that is written without spaces
// between words.
func isDense(c rune) bool {
	return c >= 0x0E00 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar)
}

// plain returns c in lower case without its diacritic, for the letters of
// Latin-1 and Latin Extended-A; other letters only become lower case.
func plain(c rune) rune {
	c = unicode.ToLower(c)
	if c < 0xE0 || c > 0x17F {
		return c
	}
	if base, ok := plainLetters()[c]; ok {
		return base
	}
	return c
}

// plainLetters maps lower-case Latin letters to the letter under the diacritic.
var plainLetters = sync.OnceValue(func() map[rune]rune {
	return spell(map[rune]string{
		'a': "àáâãäåāăą", 'c': "çćĉċč", 'd': "ďđ", 'e': "èéêëēĕėęě", 'g': "ĝğġģ", 'h': "ĥħ",
		'i': "ìíîïĩīĭįı", 'j': "ĵ", 'k': "ķ", 'l': "ĺļľŀł", 'n': "ñńņňŉ", 'o': "òóôõöøōŏő",
		'r': "ŕŗř", 's': "śŝşš", 't': "ţťŧ", 'u': "ùúûüũūŭůűų", 'w': "ŵ", 'y': "ýÿŷ", 'z': "źżž",
	})
})

func spell(groups map[rune]string) map[rune]rune {
	letters := map[rune]rune{}
	for base, group := range groups {
		for _, c := range group {
			letters[c] = base
		}
	}
	return letters
}

// Words cuts text into lower-case words, as searches do.
func Words(text string) []string { return splitWords(text) }

// ContentWords returns the words of text without stop words ("the", "please"). If all words
// are stop words, it returns them.
func ContentWords(text string) []string { return contentWords(text, len(text)) }
