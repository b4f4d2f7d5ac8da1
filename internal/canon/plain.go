package canon

import "bytes"

// maxPlainDepth is how deep isPlain looks.
const maxPlainDepth = 32

// isPlain reports whether an array or object is in canonical form, by a quick check for simple
// texts: printable ASCII without escapes, whole numbers of at most 15 digits, members in order, no
// white space. If it returns false, the text can still be canonical.
func isPlain(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
		return false
	}
	rest, ok := plainValue(raw, maxPlainDepth)
	return ok && len(rest) == 0
}

// plainValue returns what is behind the value at the beginning of text.
func plainValue(text []byte, depth int) (rest []byte, ok bool) {
	if len(text) == 0 || depth == 0 {
		return nil, false
	}
	switch text[0] {
	case '{':
		return plainObject(text[1:], depth)
	case '[':
		return plainArray(text[1:], depth)
	case '"':
		_, rest, ok = plainText(text)
		return rest, ok
	case 't', 'f', 'n':
		for _, word := range []string{"true", "false", "null"} {
			if rest, ok = bytes.CutPrefix(text, []byte(word)); ok {
				return rest, true
			}
		}
		return nil, false
	}
	return plainNumber(text)
}

// plainObject is plainValue behind the opening brace.
func plainObject(text []byte, depth int) (rest []byte, ok bool) {
	if len(text) > 0 && text[0] == '}' {
		return text[1:], true
	}
	var last []byte
	for first := true; ; first = false {
		name, rest, ok := plainText(text)
		if !ok || !first && bytes.Compare(last, name) >= 0 || len(rest) == 0 || rest[0] != ':' {
			return nil, false
		}
		last = name
		if rest, ok = plainValue(rest[1:], depth-1); !ok || len(rest) == 0 {
			return nil, false
		}
		switch rest[0] {
		case '}':
			return rest[1:], true
		case ',':
			text = rest[1:]
		default:
			return nil, false
		}
	}
}

// plainArray is plainValue behind the opening bracket.
func plainArray(text []byte, depth int) (rest []byte, ok bool) {
	if len(text) > 0 && text[0] == ']' {
		return text[1:], true
	}
	for {
		if text, ok = plainValue(text, depth-1); !ok || len(text) == 0 {
			return nil, false
		}
		switch text[0] {
		case ']':
			return text[1:], true
		case ',':
			text = text[1:]
		default:
			return nil, false
		}
	}
}

// plainText returns what is between the quotes at the beginning of text, and what is behind them.
func plainText(text []byte) (inside, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	for at := 1; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			return text[1:at], text[at+1:], true
		case c < ' ' || c > '~' || c == '\\':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// plainNumber reads a whole number that a double holds exactly, without exponent.
func plainNumber(text []byte) (rest []byte, ok bool) {
	const most = 15
	digits := bytes.TrimPrefix(text, []byte{'-'})
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	rest = digits[n:]
	negative := len(digits) < len(text)
	switch {
	case n == 0 || n > most || digits[0] == '0' && (n > 1 || negative):
		return nil, false
	case len(rest) > 0 && (rest[0] == '.' || rest[0] == 'e' || rest[0] == 'E'):
		return nil, false
	}
	return rest, true
}
