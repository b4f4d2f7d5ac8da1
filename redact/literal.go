package redact

import "bytes"

// quotedAfter returns a locator for the quoted value after a text that expression matches up to the quote.
func quotedAfter(expression string, judge func([]byte) bool) locator {
	before := compile(expression)
	return func(text []byte, at, size int) (place, bool) {
		m := before.FindIndex(text[at:min(len(text), at+size+maxName)])
		if m == nil {
			return place{}, false
		}
		p := &reader{text: text, at: at + m[1] - 1, nameStart: at}
		a := assignment{name: text[at : at+size]}
		ok := p.value(&a) && a.quoted && judge(a.value)
		a.charge(p.at - at)
		return place{a.start, a.end, a.cost}, ok
	}
}

// isOnlyLine reports whether a value without quotes is the only text of the line after its name: from is the end of
// the name.
func (p *reader) isOnlyLine(from int, a *assignment) bool {
	return p.beginsLine() && bytes.Count(p.text[from:a.start], []byte("\n")) == 1 &&
		(a.end == len(p.text) || p.text[a.end] == '\n' || p.text[a.end] == '\r')
}

// parts adds the string literals that are concatenated with the value to it, or replace it in a plan of Terraform, and
// finishes the assignment.
func (p *reader) parts(a *assignment, quote []byte) bool {
	ok := p.finish(a)
	joined := a.value
	for range 8 {
		rest := p.text[min(len(p.text), a.end+len(quote)):]
		m := concatenation.FindSubmatchIndex(rest[:min(len(rest), 90)])
		if m == nil || m[2] == m[3] && !p.parenthesis || !bytes.HasPrefix(rest[m[4]:], quote) ||
			!ok && !bytes.HasPrefix(bytes.TrimLeft(rest[:m[4]], " \t"), []byte("->")) {
			break
		}
		start := m[4] + len(quote)
		size := endOfLiteral(rest[start:min(len(rest), start+maxTyped)], quote)
		if size < 0 {
			break
		}
		joined = append(joined[:len(joined):len(joined)], rest[start:start+size]...)
		a.end += len(quote) + start + size
		p.at = a.end
	}
	a.value = judged(joined)
	return ok || len(joined) >= 4
}

// endOfLiteral returns the length of a literal that quote ends, or -1. A backslash escapes a double quote.
func endOfLiteral(text, quote []byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case bytes.HasPrefix(text[i:], quote):
			return i
		case text[i] == '\\' && quote[0] == '"':
			i++
		}
	}
	return -1
}

var concatenation = compile(`\A[ \t]{0,4}(\+|\.\.?|&|\\|->)?\s{0,40}(["'\\` + "`" + `&])`)

// enclosed returns the part of line up to the quote that encloses both name and value, or nil: "NAME=value".
func (p *reader) enclosed(line []byte) []byte {
	if p.nameStart == 0 || bytes.IndexByte([]byte("\"'`"), p.text[p.nameStart-1]) < 0 {
		return nil
	}
	quote, escaped := p.text[p.nameStart-1], p.nameStart > 1 && p.text[p.nameStart-2] == '\\'
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == quote:
			return line[:i]
		case line[i] != '\\' || quote == '\'':
		case escaped && i+1 < len(line) && line[i+1] == quote:
			return line[:i]
		default:
			i++
		}
	}
	return nil
}
