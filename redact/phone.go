package redact

import (
	"bytes"
)

// phoneAt reads a number with + and country code (ITU-T E.164: at most 15 digits), a number of the
// North American plan with its usual separators, or a national number.
func phoneAt(text []byte, i int) (span, bool) {
	if i > 0 && text[i-1] == '+' && (i < 2 || !continues(text, i-1) &&
		bytes.IndexByte([]byte("])=+-.*/"), text[i-2]) < 0) {
		return internationalAt(text, i)
	}
	if i > 0 && (continues(text, i) || text[i-1] == '.' || text[i-1] == '-' || text[i-1] == '+') {
		return span{}, false
	}
	if c := text[i]; c == '0' {
		return nationalAt(text, i)
	}
	if m := northAmericanAt(text[i:min(len(text), i+20)]); m != nil && ends(text, i+m[1]) {
		start := i
		if i > 0 && text[i-1] == '(' {
			start--
		}
		return span{start: start, end: i + m[1], kind: "phone"}, true
	}
	return nationalAt(text, i)
}

// nationalAt reads numbers with a trunk prefix as written in France and Britain. If a word such as
// "phone" precedes it, any number of 7 to 12 digits counts.
func nationalAt(text []byte, i int) (span, bool) {
	end := min(len(text), i+24)
	if text[i] == '0' {
		if m := national.FindIndex(text[i:end]); m != nil && ends(text, i+m[1]) && !isTable(text, i, i+m[1]) {
			return span{start: i, end: i + m[1], kind: "phone"}, true
		}
	}
	stop, digits := i, 0
	for at := i; at < end && phoneBytes[text[at]]; at++ {
		if isDigit(text[at]) {
			digits++
			stop = at + 1
		}
	}
	if digits < 7 || digits > 12 || !ends(text, stop) || !announced(text, i, phoneWords) {
		return span{}, false
	}
	start := i
	if i > 0 && text[i-1] == '(' {
		start--
	}
	return span{start: start, end: stop, kind: "phone"}, true
}

// phoneBytes are the characters of national numbers.
var phoneBytes = func() (set [256]bool) {
	for _, c := range []byte("0123456789 -./()") {
		set[c] = true
	}
	return set
}()

// national matches 01 23 45 67 89, 020 7946 0958, 07700 900123.
var national = compile(`\A0[1-9](?:(?: \d\d){4}|(?:\.\d\d){4}|\d{1,3} \d{3,4} \d{3,4}|\d{3} \d{6})`)

// isTable reports whether other numbers precede or follow, as in a dump.
func isTable(text []byte, start, stop int) bool {
	return start > 1 && isDigit(text[start-2]) || stop+1 < len(text) && isDigit(text[stop+1])
}

// northAmerican matches 555-234-5678, 555.234.5678 or 555) 234-5678, each also after 1 and a
// separator.
var northAmerican = compile(`\A(?:1[ .\-]\(?)?[2-9]\d\d(?:(?:\) ?|-|\)-)[2-9]\d\d-|\.[2-9]\d\d\.)\d{4}`)

// northAmericanAt tries the expression only if a separator is in the right position.
func northAmericanAt(text []byte) []int {
	if len(text) < 12 || bytes.IndexByte([]byte(")-."), text[3]) < 0 && bytes.IndexByte([]byte(" .-"), text[1]) < 0 {
		return nil
	}
	return northAmerican.FindIndex(text)
}

// decimal matches a number with a fraction, such as seconds in a log.
var decimal = compile(`^\d+\.\d+$`)

func internationalAt(text []byte, i int) (span, bool) {
	if text[i] == '0' {
		return span{}, false
	}
	digits, groups, stop := 0, 1, i
	for at := i; at < len(text) && digits < 16; at++ {
		c := text[at]
		if isDigit(c) {
			digits++
			stop = at + 1
			continue
		}
		if bytes.IndexByte([]byte(" -.()/"), c) < 0 || at+1 >= len(text) || at-stop > 1 {
			break
		}
		groups++
	}
	if digits < 8 || digits > 15 || groups > 8 || !ends(text, stop) || decimal.Match(text[i:stop]) ||
		!isDialled(onlyDigits(text[i:stop])) {
		return span{}, false
	}
	return span{start: i - 1, end: stop, kind: "phone"}, true
}

// isDialled checks the country code and, for the North American plan, area and exchange codes
// (ITU-T E.164; NANPA).
func isDialled(digits []byte) bool {
	switch digits[0] {
	case '0':
		return false
	case '1':
		return len(digits) == 11 && digits[1] >= '2' && digits[4] >= '2'
	case '7':
		return len(digits) == 11
	}
	return true
}
