// Package members finds the members of a JSON object without decoding them, for messages
// whose parts are handed on as they came. What it does not read at a glance it
// leaves to a decoder.
package members

import "bytes"

// blank is the white space of RFC 8259, section 2.
const blank = " \t\r\n"

// Each calls found with the name, without its quotes, and the value of each member of a JSON
// object, in order, for as long as it returns true. Both are parts of the object's bytes. It reports
// whether it has seen all of the object.
//
// It returns false, without a word on what is wrong, for what is no object, for names
// with escapes, and for arrays and objects as values that are nested in more than
// levels levels, their own included. Values are not checked: of a text that is valid JSON (json.Valid)
// they are the values that a decoder finds, of another they may be anything. Names
// may come twice.
func Each(object []byte, levels int, found func(name, value []byte) bool) bool {
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

// member reads the member at the beginning of text. What is behind it begins with a comma
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

// valueEnd is where the value at the beginning of text ends; negative where it does not, or
// where it has more levels.
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

// textEnd is where the quoted text at the beginning of text ends; negative where there
// is none or it does not end.
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
