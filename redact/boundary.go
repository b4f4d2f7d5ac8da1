package redact

import "bytes"

// begins reports whether a token may begin at text[at]: the byte before it is not a letter or
// digit. Letters of an escape sequence do not count: \n in a traceback, a colour code of a
// terminal, %0A in a URL.
func begins(text []byte, at int) bool {
	return at == 0 || !isAlnum(text[at-1]) || escapeBefore(text, at) > 0
}

// longestEscape is the maximum number of bytes that escapeBefore looks back.
const longestEscape = 48

// escapeBefore returns the size of the escape sequence that ends before text[at] with a letter or
// digit, or 0.
func escapeBefore(text []byte, at int) int {
	if at < 2 || !isAlnum(text[at-1]) {
		return 0
	}
	i := at - 1
	for i > 0 && at-i < longestLetters && isAlnum(text[i]) {
		i--
	}
	switch text[i] {
	case '\\', '%', '[', ';', ':', '?', '`':
	default:
		return 0
	}
	tail := text[i:at] // from the first character of the escape
	switch tail[0] {
	case '\\':
		return backslashEscape(tail)
	case '%':
		if len(tail) == 3 && isHex(tail[1]) && isHex(tail[2]) {
			return 3
		}
		return 0
	case '`':
		if len(tail) == 2 && bytes.IndexByte([]byte("abefnrtv0"), tail[1]) >= 0 {
			return 2
		}
		return 0
	}
	if !isLetter(text[at-1]) || bytes.IndexByte(text[max(0, at-longestEscape):at], '[') < 0 {
		return 0
	}
	if m := colourEnd.FindIndex(text[max(0, at-longestEscape):at]); m != nil {
		return m[1] - m[0]
	}
	return 0
}

// backslashEscape returns the size of text if all of it is one escape, and 0 otherwise: \n, \x0a,
// \u000a, \U0000000a, \012.
func backslashEscape(text []byte) int {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[1]]
	switch {
	case len(text) == 2 && bytes.IndexByte([]byte("abefnrtv0"), text[1]) >= 0:
		return 2
	case digits > 0 && len(text) == 2+digits:
		if _, ok := hexNumber(text, 2, digits); ok {
			return len(text)
		}
	case len(text) == 4 && '0' <= text[1] && text[1] <= '3' && isOctal(text[2]) && isOctal(text[3]):
		return 4
	}
	return 0
}

func isOctal(c byte) bool { return '0' <= c && c <= '7' }

// longestLetters is the maximum number of letters and digits at the end of an escape sequence, plus
// one.
const longestLetters = 11

// colour matches a control sequence of a terminal. Its escape character may be written as in source
// code.
const colour = `(?:\x1b|\\+x1[bB]|\\+u001[bB]|\\+033|\\+e|\^\[)\[[0-9;:?]{0,32}[A-Za-z]`

// opensText reports whether text[at] is a grave accent that begins a quoted text, and not an escape of PowerShell.
func opensText(text []byte, at int) bool {
	return text[at] == '`' && (at == 0 || bytes.IndexByte([]byte(" \t\n=(,:["), text[at-1]) >= 0)
}

// whole moves the ends of a span so that they do not cut an escape sequence in two.
func whole(text []byte, s span) span {
	for at := s.start + 1; at <= min(s.end, s.start+longestEscape); at++ { // an escape that begins before the span
		if size := escapeBefore(text, at); size > at-s.start && !opensText(text, at-size) {
			s.start = at
			break
		}
	}
	backslashes := 0
	for s.end-backslashes > s.start && text[s.end-backslashes-1] == '\\' {
		backslashes++
	}
	if backslashes%2 == 1 && s.end < len(text) {
		s.end--
	}
	return s
}
