package redact

import (
	"slices"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// findNumbers examines every position at which digits begin.
func findNumbers(text []byte) []span {
	var spans []span
	for i := 0; i < len(text); i++ {
		c := text[i]
		if !isDigit(c) && c != ':' {
			continue
		}
		if i > 0 && isDigit(text[i-1]) && isDigit(c) {
			continue
		}
		s, ok := numberAt(text, i)
		if ok {
			spans = append(spans, s)
			i = s.end - 1
			continue
		}
		for c != ':' && i+1 < len(text) && isDigit(text[i+1]) {
			i++
		}
	}
	return spans
}

// numberAt recognises a number that begins at text[i] or shortly before it.
func numberAt(text []byte, i int) (span, bool) {
	if text[i] == ':' {
		return ipv6At(text, i)
	}
	if s, ok := ibanAt(text, i); ok {
		return s, true
	}
	if s, ok := phoneAt(text, i); ok {
		return s, true
	}
	if i > 0 && (continues(text, i) || text[i-1] == '.' || text[i-1] == '-') {
		return span{}, false
	}
	for _, recognise := range []func([]byte, int) (span, bool){ssnAt, cardAt, ipv4At} {
		if s, ok := recognise(text, i); ok {
			return s, true
		}
	}
	return span{}, false
}

// ends reports whether a number that ends at stop is not part of a longer word or number.
func ends(text []byte, stop int) bool {
	if stop >= len(text) {
		return true
	}
	if isAlnum(text[stop]) {
		return false
	}
	if stop+1 >= len(text) {
		return true
	}
	return !(text[stop] == '-' && isAlnum(text[stop+1]) || text[stop] == '.' && isDigit(text[stop+1]))
}

// continues reports whether text[i] continues a word.
func continues(text []byte, i int) bool {
	return i > 0 && isAlnum(text[i-1]) && escapeBefore(text, i) == 0
}

// announced reports whether words matches the text shortly before text[i].
func announced(text []byte, i int, words *lazyregexp.Regexp) bool {
	return words.Match(text[max(0, i-32):i])
}

var (
	cardWords = compile(`(?i)(?:card|visa|pan\b|credit|debit)[^\n]{0,20}$`)
	ssnWords  = compile(`(?i)(?:\bssn|social.?security)[^\n]{0,20}$`)
	// Words that also precede other numbers (a call, a cell) count only directly before the number.
	phoneWords = compile(
		`(?i)(?:(?:\bphone|\bmobile|\btel(?:ephone|efon|e?fono|\.|:|\b)|\bfax|whatsapp|\bsms|\bmob\b)[^\n0-9]{0,16}|` +
			`\b(?:call|dial)(?: (?:me|us|him|her|them))?(?: (?:at|on))?:? |\bcell(?:phone)?(?: ` +
			`(?:no|nr|number))?\.?:? )[+(]?$`)
)

func ssnAt(text []byte, i int) (span, bool) {
	const size = len("123-45-6789")
	if s, ok := announcedSSN(text, i); ok {
		return s, true
	}
	if i+size > len(text) || text[i+3] != '-' || text[i+6] != '-' || !ends(text, i+size) {
		return span{}, false
	}
	number := text[i : i+size]
	if len(onlyDigits(number)) != 9 || !isSSN(number) {
		return span{}, false
	}
	return span{start: i, end: i + size, kind: "us-ssn"}, true
}

// announcedSSN reads nine digits without hyphens. They are a social security number only if a word
// before them identifies them as one.
func announcedSSN(text []byte, i int) (span, bool) {
	if i+9 > len(text) || !isDigit(text[i+2]) || text[i+3] != ' ' && !isDigit(text[i+8]) {
		return span{}, false
	}
	m := bareSSN.FindIndex(text[i:min(len(text), i+12)])
	if m == nil || !ends(text, i+m[1]) || !announced(text, i, ssnWords) {
		return span{}, false
	}
	digits := onlyDigits(text[i : i+m[1]])
	if !isSSN(slices.Concat(digits[:3], []byte("-"), digits[3:5], []byte("-"), digits[5:])) {
		return span{}, false
	}
	return span{start: i, end: i + m[1], kind: "us-ssn"}, true
}

var bareSSN = compile(`\A\d{3} ?\d\d ?\d{4}`)

// cardAt reads 13 to 19 digits, ungrouped or in groups separated by one space or hyphen. Ungrouped,
// 13 digits are more often an article number (EAN) and 19 digits an identifier, so a word before
// them must identify them as a card.
func cardAt(text []byte, i int) (span, bool) {
	digits, best := 0, 0
	for at := i; at < len(text) && digits <= 19; at++ {
		switch c := text[at]; {
		case isDigit(c):
			digits++
			if digits >= 13 && ends(text, at+1) && isCard(text[i:at+1]) &&
				(digits != 13 && digits != 19 || at+1-i > digits || announced(text, i, cardWords)) {
				best = at + 1
			}
		case (c == ' ' || c == '-') && at+1 < len(text) && isDigit(text[at+1]) && isDigit(text[at-1]):
		default:
			at = len(text)
		}
	}
	return span{start: i, end: best, kind: "card"}, best > 0
}

// ibanAt reads the two letters of a country before the digit, two digits, and groups.
func ibanAt(text []byte, i int) (span, bool) {
	start := i - 2
	if start < 0 || !isUpper(text[start]) || !isUpper(text[start+1]) || (start > 0 && continues(text, start)) {
		return span{}, false
	}
	best, count := 0, 0
	for at := start; at < len(text) && count < 34; at++ {
		c := text[at]
		if c == ' ' && at > i+1 && at+1 < len(text) && text[at-1] != ' ' {
			continue
		}
		if !isDigit(c) && !isUpper(c) {
			break
		}
		count++
		if count >= 15 && ends(text, at+1) && isIBAN(text[start:at+1]) {
			best = at + 1
		}
	}
	return span{start: start, end: best, kind: "iban"}, best > 0
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
