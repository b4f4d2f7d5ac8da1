package redact

import "bytes"

// maxQuotedAfter is the maximum length of the text between an anchor and the quote.
const maxQuotedAfter = 300

// quotedAfter returns a locator for the quoted value after a text that expression matches up to the quote.
func quotedAfter(expression string, judge func([]byte) bool) locator {
	before := compile(expression)
	return func(text []byte, at, size int) (place, bool) {
		m := before.FindIndex(text[at:min(len(text), at+size+maxQuotedAfter)])
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

// raw reads a literal whose delimiters are not quotes, or more than a quote: %q{…} of Ruby, q(…) of Perl, [[…]] of Lua,
// R"x(…)x" of C++, ”…” of Nix.
func (p *reader) raw(a *assignment) bool {
	from := p.at
	window := p.text[from:min(len(p.text), from+maxTyped)]
	m := rawOpening.FindSubmatchIndex(window)
	if m == nil {
		return false
	}
	a.start = from + m[1]
	if m[2*rawNix] >= 0 { // the character after it was only compared
		a.start = from + m[2*rawNix+1]
	}
	inside := p.text[a.start:min(len(p.text), a.start+maxRaw)]
	size := -1
	for group := 1; group < rawGroups; group++ {
		if m[2*group] >= 0 {
			size = endOfRaw(group, window[m[2*group]:m[2*group+1]], inside)
			a.loose = a.loose || group == rawLua || group == rawBare
		}
	}
	if end := a.start + size + 1; size < 4 || m[2*rawDelimited] >= 0 && end < len(p.text) &&
		isAlnum(p.text[end]) { // it ends within a word, so the characters are those of a password
		return false
	}
	a.quoted, a.end = true, a.start+size
	for a.start < a.end && bytes.IndexByte([]byte(" \t\r\n"), p.text[a.start]) >= 0 {
		a.start++
	}
	for a.start < a.end && bytes.IndexByte([]byte(" \t\r\n"), p.text[a.end-1]) >= 0 {
		a.end--
	}
	p.at = a.end
	return true
}

// The groups of rawOpening.
const (
	rawDelimited = 1 + iota // the delimiter after %q or q
	rawBare                 // the same after a per cent sign alone
	rawLua                  // the level
	rawCPP                  // the delimiter
	rawNix
	rawGroups
)

var rawOpening = compile(`\A[ \t]{0,20}(?:(?:%[qQ]|q{1,2}[ \t]{0,2})([{(\[<|!/~])|%([{(\[])|\[(=*)\[\n?|` +
	`(?:u8|[uUL])?R"([^()\\\s"]{0,16})\(|('')(?:[^\s',;)\]}'"]|[ \t]*\n[ \t]+))`)

// maxRaw is the maximum number of bytes of such a literal.
const maxRaw = 2 * maxTyped

// endOfRaw returns the length of a literal that a group of rawOpening begins, or -1.
func endOfRaw(group int, delimiter, text []byte) int {
	switch group {
	case rawLua:
		if len(text) == 0 || bytes.IndexByte([]byte("\"'[{"), text[0]) >= 0 {
			return -1 // lists in a list
		}
		return bytes.Index(text, []byte("]"+string(delimiter)+"]"))
	case rawCPP:
		return bytes.Index(text, []byte(")"+string(delimiter)+`"`))
	case rawNix:
		for i := 0; ; i += 2 {
			size := bytes.Index(text[i:], []byte("''"))
			if size < 0 {
				return -1
			}
			if i += size; i+2 == len(text) || bytes.IndexByte([]byte("$'\\"), text[i+2]) < 0 { // else it is an escape
				return i
			}
		}
	}
	opens, closes := delimiter[0], delimiter[0]
	if i := bytes.IndexByte([]byte("{([<"), opens); i >= 0 {
		closes = "})]>"[i]
	}
	for i, depth := 0, 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return -1
		case c == '\\':
			i++
		case c == closes && depth == 0:
			return i
		case c == closes:
			depth--
		case c == opens:
			depth++
		}
	}
	return -1
}

// tuple reads a pair of Erlang and Elixir: {password, "…"}, {<<"password">>, <<"…">>}.
func (p *reader) tuple(nameStart int) bool {
	if !tupleBegins.Match(p.text[max(0, nameStart-8):nameStart]) {
		return false
	}
	m := tupleValue.FindIndex(p.text[p.at:min(len(p.text), p.at+maxJudged)])
	if m == nil {
		return false
	}
	p.at += bytes.IndexByte(p.text[p.at:p.at+m[1]], ',') + 1
	if i := bytes.Index(p.rest()[:6], []byte("<<")); i >= 0 {
		p.at += i + 2
	}
	return true
}

var (
	tupleBegins = compile(`\{[ \t]{0,2}(?:<<["']|:)?["']?$`)
	tupleValue  = compile(`\A(?:>>)?[ \t]{0,2},\s{0,20}(?:<<)?"(?:[^"\n\\]|\\.){4,128}"(?:/utf8)?(?:>>)?\s{0,20}\}`)
)

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
