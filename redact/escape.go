package redact

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escaped unescapes text written as in JSON or in code, line by line, and searches the result. The
// spans are positions in the original text.
func (s *search) escaped(text []byte, d depth) []span {
	return s.mapped(text, d, isEscaped, escapeAt)
}

// percent does the same for percent escapes of URLs (RFC 3986, section 2.1), with + as itself and
// with + as a space.
func (s *search) percent(text []byte, d depth) []span {
	found := s.mapped(text, d, isPercent, percentAt)
	return append(found,
		s.mapped(text, d, func(line []byte) bool { return isPercent(line) && bytes.IndexByte(line, '+') >= 0 },
			formAt)...)
}

// mapped unescapes each line for which has returns true, and searches the result. at reads one
// escape.
func (s *search) mapped(text []byte, d depth, has func([]byte) bool, at func([]byte) ([]byte, int)) []span {
	var found []span
	start := 0
	for line := range bytes.Lines(text) {
		for _, part := range windows(line) {
			if has(line[part.start:part.end]) && s.work.spend(part.end-part.start) {
				plain, places := unescape(line[part.start:part.end], at)
				found = append(found, moved(backMapped(s.deep(plain, d), places), start+part.start)...)
			}
		}
		start += len(line)
	}
	return found
}

// A line longer than maxWhole is unescaped in windows of that length. They overlap, so that a value
// shorter than overlap is complete in at least one window.
const (
	maxWhole = 16 << 10
	overlap  = 2 << 10
)

// windows returns the parts in which a line is unescaped.
func windows(line []byte) []span {
	if len(line) <= maxWhole {
		return []span{{end: len(line)}}
	}
	var parts []span
	for start := 0; ; start += maxWhole - overlap {
		end := min(start+maxWhole, len(line))
		parts = append(parts, span{start: start, end: end})
		if end == len(line) {
			return parts
		}
	}
}

// backMapped moves spans of an unescaped text to their positions in the original text. A span that
// contains escapes is replaced as a whole.
func backMapped(spans []span, places []int) []span {
	for i, s := range spans {
		from, to := places[s.start], places[s.end]
		if to-from != s.end-s.start {
			spans[i].rewrite, spans[i].joined = nil, true
		}
		spans[i].start, spans[i].end = from, to
	}
	return spans
}

// isEscaped reports whether a text contains an escape.
func isEscaped(text []byte) bool {
	for at := 0; ; at += 2 {
		i := bytes.IndexByte(text[at:], '\\')
		if i < 0 || at+i+1 >= len(text) {
			return false
		}
		at += i
		switch text[at+1] {
		case 'u', 'U', 'x', '/', '\\', 'n', 'r', 't', '"', '0', '1':
			return true
		}
	}
}

func isPercent(text []byte) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(text[at:], '%')
		if i < 0 || at+i+2 >= len(text) {
			return false
		}
		at += i
		if isHex(text[at+1]) && isHex(text[at+2]) || text[at+1] == 'u' {
			return true
		}
	}
}

// unescape replaces the escapes that at reads. places has, for each byte of plain and for its end,
// the position in text.
func unescape(text []byte, at func([]byte) ([]byte, int)) (plain []byte, places []int) {
	plain, places = make([]byte, 0, len(text)), make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		char, size := at(text[i:])
		if size == 0 {
			char, size = text[i:i+1], 1
		}
		for range char {
			places = append(places, i)
		}
		plain = append(plain, char...)
		i += size
	}
	return plain, append(places, len(text))
}

func percentAt(text []byte) (char []byte, size int) {
	if text[0] != '%' {
		return nil, 0
	}
	if len(text) > 1 && text[1] == 'u' { // from JavaScript's escape function
		if code, ok := hexNumber(text, 2, 4); ok {
			return utf8.AppendRune(nil, code), 6
		}
	}
	code, ok := hexNumber(text, 1, 2)
	if !ok {
		return nil, 0
	}
	return []byte{byte(code)}, 3
}

func formAt(text []byte) (char []byte, size int) {
	if text[0] == '+' {
		return []byte(" "), 1
	}
	return percentAt(text)
}

// control maps the letter of an escape to its control character.
var control = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b}

// escapeAt returns the character of the escape at the beginning of text, and the size of the
// escape. The size is 0 if text does not begin with an escape.
func escapeAt(text []byte) (char []byte, size int) {
	if len(text) < 2 || text[0] != '\\' {
		return nil, 0
	}
	switch c := text[1]; c {
	case 'U':
		if code, ok := hexNumber(text, 2, 8); ok {
			return utf8.AppendRune(nil, code), 10
		}
	case '/', '"', '\\', '\'':
		return text[1:2], 2
	case 'n', 'r', 't', 'b', 'f', 'v', 'a', 'e':
		return []byte{control[c]}, 2
	case 'x':
		if code, ok := hexNumber(text, 2, 2); ok {
			return []byte{byte(code)}, 4
		}
	case '0', '1', '2', '3':
		if len(text) >= 4 {
			if code, err := strconv.ParseUint(string(text[1:4]), 8, 8); err == nil {
				return []byte{byte(code)}, 4
			}
		}
	case 'u':
		if m := bracedCode.FindSubmatch(text[:min(len(text), 10)]); m != nil {
			code, _ := hexNumber(m[1], 0, len(m[1]))
			return utf8.AppendRune(nil, code), len(m[0])
		}
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

// bracedCode matches \u{1f600}, of JavaScript, Rust and PHP.
var bracedCode = compile(`^\\u\{([0-9A-Fa-f]{1,6})\}`)

// hexNumber reads a hexadecimal number with the given number of digits.
func hexNumber(text []byte, at, digits int) (rune, bool) {
	if len(text) < at+digits {
		return 0, false
	}
	n := rune(0)
	for _, c := range text[at : at+digits] {
		switch {
		case isDigit(c):
			n = n<<4 | rune(c-'0')
		case isHex(c):
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}
