package codegen

import (
	"strconv"
	"unicode/utf8"
)

// string reads a string; the next byte is its opening quote.
func (p *parser) string() (string, error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			text := p.data[start:p.pos]
			p.pos++
			if !utf8.ValidString(text) {
				return "", errUTF8
			}
			return text, nil
		case c == '\\':
			return p.escapedString(start)
		case c < 0x20:
			return "", errSyntax
		}
		p.pos++
	}
	return "", errSyntax
}

// escapedString reads on from the first backslash of a string.
func (p *parser) escapedString(start int) (string, error) {
	text := []byte(p.data[start:p.pos])
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		p.pos++
		switch {
		case c == '"':
			if !utf8.ValidString(p.data[start:p.pos]) {
				return "", errUTF8
			}
			return string(text), nil
		case c < 0x20:
			return "", errSyntax
		case c != '\\':
			text = append(text, c)
			continue
		}
		r, err := p.escape()
		if err != nil {
			return "", err
		}
		text = appendWTF8(text, r)
	}
	return "", errSyntax
}

// escape reads what follows a backslash. A high and a low surrogate in a row
// become one character; a surrogate alone stays what it is.
func (p *parser) escape() (rune, error) {
	if p.pos == len(p.data) {
		return 0, errSyntax
	}
	c := p.data[p.pos]
	p.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
	default:
		return 0, errSyntax
	}
	high, ok := p.hex(p.pos)
	if !ok {
		return 0, errSyntax
	}
	p.pos += 4
	if high>>10 == 0xD800>>10 && p.pos+1 < len(p.data) && p.data[p.pos] == '\\' && p.data[p.pos+1] == 'u' {
		if low, ok := p.hex(p.pos + 2); ok && low>>10 == 0xDC00>>10 {
			p.pos += 6
			return (high-0xD800)<<10 + (low - 0xDC00) + 0x10000, nil
		}
	}
	return high, nil
}

func (p *parser) hex(at int) (rune, bool) {
	if at+4 > len(p.data) {
		return 0, false
	}
	n, err := strconv.ParseUint(p.data[at:at+4], 16, 16)
	return rune(n), err == nil
}
