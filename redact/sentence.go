package redact

import (
	"bytes"
	"unicode/utf8"
)

// passwordTerms are the terms for a password in a sentence.
func passwordTerms() []string {
	return append([]string{"password", "passwd", "passphrase", "passcode", "pwd", "passwort"}, foreignPasswords()...)
}

// passwordTerm matches such a term and the words between it and the password.
var passwordTerm = `(?i)\A(?:password|passwd|passphrase|passcode|pwd|passwort|` + foreignPassword + `)(?:'s)?` +
	`(?: (?:for|of|für|para|pour|per|do) [^\n=:]{1,40}?| \([^)\n]{1,30}\))?(?:\*\*)?` +
	`(?:(?: ?:| is| was| ist| lautet| es| est| é| è| jest| =| -| –| —|'s)(?: now| set to)?:?(?:\*\*)?`

// sentencePassword matches a password in a sentence: "the password for staging is …", "set the password
// to …", "Password (prod): …". sentenceSymbols matches passwords with any symbols at the same place, in quotes or
// up to the next space.
var (
	sentencePassword = compile(passwordTerm +
		" [\"'`]?| to [\"'`])([^\\s\"'`,;<>(){}\\[\\]]{5,63}[^\\s\"'`,;<>(){}\\[\\].!?:])")
	sentenceSymbols = compile(passwordTerm + "| to) " +
		"(?:\"([^\"\\n]{8,64})\"|'([^'\\n]{8,64})'|`([^`\\n]{8,64})`|([^\\s\"'`]\\S{7,63}))")
)

// passwordInSentence finds a password in a sentence after the term text[at:at+size].
func passwordInSentence(text []byte, at, size int) (place, bool) {
	window := text[at:min(len(text), at+size+200)]
	if len(window) == size || bytes.IndexByte([]byte(" :*('="), window[size]) < 0 && window[size] < utf8.RuneSelf ||
		!hasDigit(window) {
		return place{cost: 20}, false
	}
	if m := sentenceSymbols.FindSubmatchIndex(window); m != nil {
		for group := 2; group < len(m); group += 2 {
			if m[group] < 0 {
				continue
			}
			value := window[m[group] : m[group]+endOfText(window[m[group]:m[group+1]])]
			ok := false
			if group == 8 { // without quotes
				value = bytes.TrimRight(value, ".,;:")
				ok = isTyped(value)
			} else {
				ok = mixed(value) && passwordText(value) && !isReference(value) && !isProse(value)
			}
			if ok && !unicodeEscape.Match(value) {
				return place{at + m[group], at + m[group] + len(value), len(window)}, true
			}
		}
	}
	m := sentencePassword.FindSubmatchIndex(window)
	if m == nil {
		return place{cost: len(window)}, false
	}
	value := window[m[2] : m[2]+endOfText(window[m[2]:m[3]])]
	ok := isPasswordWord(value) && (begins(text, at) || mixed(value) && changes(value) >= 3 && random(value))
	return place{at + m[2], at + m[2] + len(value), len(window)}, ok
}

// isPasswordWord requires letters and digits, because most text after such a word is an ordinary word.
func isPasswordWord(b []byte) bool {
	return len(b) >= 6 && hasDigit(b) && !unicodeEscape.Match(b) && bytes.ContainsAny(b, letters) && passwordText(b) &&
		!isReference(b) && !identifier.Match(b)
}

// unicodeEscape matches an escape. Text that contains one is searched again after unescaping.
var unicodeEscape = compile(`\\u[0-9A-Fa-f]{4}`)
