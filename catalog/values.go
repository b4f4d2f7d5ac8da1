package catalog

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// questionWord is one word of a question. A value is a name, a number, a quotation, a path
// or an address: an argument for a tool, not a description of it.
type questionWord struct {
	text  string
	value bool
}

// splitQuestion splits a question like splitWords and marks values.
func splitQuestion(question string) []questionWord {
	var words []questionWord
	quoted, begins := rune(0), true
	for field := range strings.FieldsSeq(question) {
		first, size := utf8.DecodeRuneInString(field)
		last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(field, ".,;:!?"))
		if quoted == 0 && isQuote(first) && len(field) > size {
			quoted = closing(first)
		}
		value := quoted != 0 || isValue(field) || !begins && isName(field)
		if quoted != 0 && last == quoted {
			quoted = 0
		}
		begins = strings.ContainsAny(field[len(field)-1:], ".!?:")
		for _, word := range splitWords(field) {
			words = append(words, questionWord{word, value})
		}
	}
	if quoted == 0 {
		return words
	}
	for i := range words { // a quotation without an end does not count
		words[i].value = false
	}
	return words
}

func isQuote(c rune) bool { return strings.ContainsRune("\"'`“‘«", c) }

func closing(quote rune) rune {
	switch quote {
	case '“':
		return '”'
	case '‘':
		return '’'
	case '«':
		return '»'
	}
	return quote
}

// isValue reports whether a field has a digit, or is a path or an address.
func isValue(field string) bool {
	return strings.ContainsAny(field, "0123456789@/\\")
}

// isName reports whether a field in the middle of a sentence begins in upper case
// and goes on in lower case.
func isName(field string) bool {
	field = strings.TrimLeft(field, "([")
	first, size := utf8.DecodeRuneInString(field)
	second, _ := utf8.DecodeRuneInString(field[size:])
	return unicode.IsUpper(first) && unicode.IsLower(second)
}
