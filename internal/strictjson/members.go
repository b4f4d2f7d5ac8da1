package strictjson

import "bytes"

// blank is the white space of RFC 8259, section 2.
const blank = " \t\r\n"

// EachMember calls found with the name, without its quotes, and the value of each member
// of a JSON object, in order, until found returns false. Both are parts of object. It
// reports whether it has seen all members.
//
// It is a fast path for messages whose parts are passed on unchanged. It returns false, and
// the caller must use a decoder, if the text is not an object, a name has an escape, or
// a value has more than levels levels. It does not check values, and names can repeat:
// the caller must know that the text is valid JSON.
func EachMember(object []byte, levels int, found func(name, value []byte) bool) bool {
	object = bytes.Trim(object, blank)
	if len(object) < 2 || object[0] != '{' {
		return false
	}
	rest := bytes.TrimLeft(object[1:], blank)
	if rest[0] == '}' {
		return len(rest) == 1
	}
	for {
		name, value, behind, ok := member(rest, levels)
		if !ok || !found(name, value) {
			return false
		}
		if behind[0] == '}' {
			return len(behind) == 1
		}
		rest = bytes.TrimLeft(behind[1:], blank)
	}
}

// member reads the member at the start of text. The rest of text begins with a comma
// or the closing brace.
func member(text []byte, levels int) (name, value, behind []byte, ok bool) {
	end := textEnd(text)
	if end < 0 || bytes.IndexByte(text[:end], '\\') >= 0 {
		return nil, nil, nil, false
	}
	name, text = text[1:end-1], bytes.TrimLeft(text[end:], blank)
	if len(text) == 0 || text[0] != ':' {
		return nil, nil, nil, false
	}
	text = bytes.TrimLeft(text[1:], blank)
	if end = valueEnd(text, levels); end <= 0 {
		return nil, nil, nil, false
	}
	value, behind = text[:end], bytes.TrimLeft(text[end:], blank)
	return name, value, behind, len(behind) > 0 && (behind[0] == ',' || behind[0] == '}')
}

// valueEnd returns the length of the value at the start of text; -1 if it does not end, or
// has more levels.
func valueEnd(text []byte, levels int) int {
	switch {
	case len(text) == 0:
		return -1
	case text[0] == '"':
		return textEnd(text)
	case text[0] != '{' && text[0] != '[':
		return bytes.IndexAny(text, blank+",}]")
	}
	depth := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			end := textEnd(text[at:])
			if end < 0 {
				return -1
			}
			at += end - 1
		case '{', '[':
			if depth++; depth > levels {
				return -1
			}
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return -1
}

// textEnd returns the length of the quoted string at the start of text; -1 if text does not
// start with a string that ends.
func textEnd(text []byte) int {
	if len(text) == 0 || text[0] != '"' {
		return -1
	}
	for at := 1; ; {
		next := bytes.IndexByte(text[at:], '"')
		if next < 0 {
			return -1
		}
		at += next
		escapes := 0
		for text[at-1-escapes] == '\\' {
			escapes++
		}
		if at++; escapes%2 == 0 {
			return at
		}
	}
}
