package redact

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// findEscaped undoes the escapes that texts have in JSON and in code, and finds
// in what comes out, line by line. The places are those of the text as it was.
func findEscaped(text []byte, depth int, find func([]byte) []span) []span {
	var found []span
	start := 0
	for line := range bytes.Lines(text) {
		if isEscaped(line) {
			plain, places := unescape(line)
			for _, s := range findDeep(plain, depth-1, find) {
				found = append(found, span{start + places[s.start], start + places[s.end], s.kind})
			}
		}
		start += len(line)
	}
	return found
}

// isEscaped says whether a text has an escape in it that hides a character.
func isEscaped(text []byte) bool {
	for at := 0; ; at += 2 {
		i := bytes.IndexByte(text[at:], '\\')
		if i < 0 || at+i+1 >= len(text) {
			return false
		}
		at += i
		switch text[at+1] {
		case 'u', 'x', '/', '\\':
			return true
		}
	}
}

// unescape undoes \u0041 (RFC 8259, section 7), \x41, \/, \" and \\. With the
// text comes, for each of its bytes and for its end, the place where it was.
func unescape(text []byte) (plain []byte, places []int) {
	plain, places = make([]byte, 0, len(text)), make([]int, 0, len(text)+1)
	for at := 0; at < len(text); {
		char, size := escapeAt(text[at:])
		if size == 0 {
			char, size = text[at:at+1], 1
		}
		for range char {
			places = append(places, at)
		}
		plain = append(plain, char...)
		at += size
	}
	return plain, append(places, len(text))
}

// escapeAt returns what the escape stands for that a text begins with, and its
// size; 0 when it begins with none.
func escapeAt(text []byte) (char []byte, size int) {
	if len(text) < 2 || text[0] != '\\' {
		return nil, 0
	}
	switch text[1] {
	case '/', '"', '\\', '\'':
		return text[1:2], 2
	case 'x':
		if code, ok := hexNumber(text, 2, 2); ok {
			return []byte{byte(code)}, 4
		}
	case 'u':
		code, ok := hexNumber(text, 2, 4)
		if !ok {
			return nil, 0
		}
		if low, ok := hexNumber(text, 8, 4); ok && text[6] == '\\' && text[7] == 'u' && utf16.IsSurrogate(code) {
			return utf8.AppendRune(nil, utf16.DecodeRune(code, low)), 12
		}
		return utf8.AppendRune(nil, code), 6
	}
	return nil, 0
}

// hexNumber reads a number of some digits.
func hexNumber(text []byte, at, digits int) (rune, bool) {
	if len(text) < at+digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[at:at+digits]), 16, 32)
	return rune(n), err == nil
}
