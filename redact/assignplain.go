package redact

import "bytes"

// plain reads a value without quotes. It returns false if the text continues as code or as a
// template.
func (p *reader) plain(a *assignment) bool {
	a.start = p.at
	if m := braced.FindSubmatchIndex(p.text[p.at:min(len(p.text), p.at+maxTyped)]); m != nil {
		a.start, a.end, a.loose = p.at+m[2], p.at+m[3], true
		p.at = a.end
		return p.finish(a)
	}
	judge := isGenerated
	if passwordName.Match(a.name) {
		judge = isTyped
	}
	if passwordName.Match(a.name) || strongName.Match(a.name) && !harmlessName.Match(a.name) {
		if end := p.typed(judge); end > 0 {
			a.end, a.typed, p.at = end, true, end
			return p.finish(a)
		}
	}
	for p.at < len(p.text) && p.at-a.start <= maxValue && !p.endsPlain() {
		p.at++
	}
	if p.at < len(p.text) && bytes.IndexByte([]byte("({["), p.text[p.at]) >= 0 {
		return p.text[p.at] == '(' && p.lastArgument(a)
	}
	a.end = p.at
	a.form = p.at < len(p.text) && p.text[p.at] == '&'
	if isScheme(p.text[a.start:a.end]) && p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
		return p.plain(a)
	}
	return p.finish(a)
}

// maxCall is how much of a line is read for the last argument of a call.
const maxCall = 300

// lastArgument reads the last quoted argument of the calls that make the value, which is used if there is no other:
// try(var.password, "…", null), cfg.get("token", fallback="…"), Optional.ofNullable(x).orElse("…"). It must look
// random.
func (p *reader) lastArgument(a *assignment) bool {
	line := p.text[p.at:min(len(p.text), p.at+maxCall)]
	if i := bytes.IndexAny(line, "\n;"); i >= 0 {
		line = line[:i]
	}
	m := lastQuoted.FindSubmatchIndex(line)
	if m == nil {
		return false
	}
	value := line[m[2]:m[3]]
	a.start, a.end, a.quoted = p.at+m[2], p.at+m[3], true
	p.at = a.end
	isRandom := changes(value) >= 3 && random(value) || !tokenLike.Match(value) && isGenerated(value)
	return isRandom && p.finish(a)
}

var lastQuoted = compile(
	`^.*["']([^"'\s]{10,200})["'](?:,[ \t]{0,4}(?:null|nil|None|undefined|true|false))?[ \t]{0,4}\)`)

// braced matches a value of a connection string of ODBC.
var braced = compile(`\A\{((?:[^}\s]|\}\}){8,})\}(?:;|\z)`)

// maxTyped is the length of the longest unquoted password with symbols.
const maxTyped = 128

// typed returns the end of an unquoted password that contains characters which end other values. It
// extends to the next space, or to the end of the line if the name begins the line. typed returns 0
// if the value is not such a password.
func (p *reader) typed(judge func([]byte) bool) int {
	line := p.text[p.at:min(len(p.text), p.at+maxTyped)]
	if i := bytes.IndexAny(line, "\r\n"); i >= 0 {
		line = line[:i]
	} else if len(line) == maxTyped {
		return 0
	}
	if m := escapedBreak.FindIndex(line); m != nil {
		line = line[:m[0]]
	}
	if inside := p.enclosed(line); isGenerated(inside) {
		return p.at + len(inside)
	}
	if i := p.closing(line); i >= 0 {
		line = line[:i]
	}
	word := line
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		word = line[:i]
	}
	for i, c := range word {
		if c == '&' && nextParameter.Match(word[i:]) {
			word, line = word[:i], word[:i]
			break
		}
	}
	for _, value := range [][]byte{line, word} {
		if len(word) < len(line) && len(value) == len(line) && (!p.beginsLine() || !isOdd(value)) {
			continue
		}
		value = withoutClosers(bytes.TrimRight(value, " \t,;"))
		if !tokenLike.Match(value) && (judge(value) || isGenerated(value)) {
			return p.at + len(value)
		}
	}
	return 0
}

// isOdd reports whether a text has no part, separated by spaces, that is a word, a name or a flag.
func isOdd(text []byte) bool {
	for part := range bytes.FieldsSeq(text) {
		if tokenLike.Match(part) || wordlike.Match(part) || part[0] == '-' || part[0] == '#' {
			return false
		}
	}
	return true
}

// tokenLike matches values that other rules examine.
var tokenLike = compile(`^[\w.\-/+=:]*$`)

// closing returns the position in line at which the enclosing quoted text, element, row or list of
// assignments ends, or -1.
func (p *reader) closing(line []byte) int {
	before := p.text[1+bytes.LastIndexByte(p.text[:p.nameStart], '\n') : p.nameStart]
	before = before[max(0, len(before)-maxTyped):]
	if bytes.IndexByte(p.text[p.nameStart:p.at], '\n') >= 0 {
		before = nil
	}
	end := len(line)
	for _, quote := range []byte("\"'`") {
		opened := bytes.Count(before, []byte{quote})
		for i := range line[:end] {
			if line[i] == quote && (opened%2 == 1 || opened > 0 && (i+1 == len(line) || isDelimiter(line[i+1]))) {
				end = len(bytes.TrimRight(line[:i], "\\"))
				break
			}
		}
	}
	inElement, inRow := bytes.IndexByte(before, '<') >= 0, bytes.IndexByte(before, ',') >= 0
	inDefault := bytes.HasSuffix(p.text[:p.at], []byte(":-"))
	for i, c := range line[:end] {
		if c == '<' && inElement && i+1 < len(line) && line[i+1] == '/' || c == ',' && inRow || c == '}' && inDefault ||
			c == 0x1b || c == 0 || closesValue.Match(line[i:]) {
			return i
		}
	}
	if end == len(line) {
		return -1
	}
	return end
}

// closesValue matches a cell's border, the next assignment of a list, or an escape.
var closesValue = compile(
	`^(?: \||│|[,;] ?(?:[A-Za-z][a-z]{3,}[\w .\-]{0,40}|[A-Z_]{5,40}|(?i:uid|pwd|db|ssl|id))[=:]|` +
		`\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|033))`)

// beginsLine reports whether only spaces and words that set a variable precede the name in its
// line.
func (p *reader) beginsLine() bool {
	before := p.text[max(0, p.nameStart-40):p.nameStart]
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 {
		before = before[i+1:]
	} else if len(before) == 40 {
		return false
	}
	return lineBegins.Match(before)
}

var lineBegins = compile(`^[ \t]*(?:- |export |set |ENV |env )?$`)

// withoutClosers removes brackets and quotes at the end of a value that have no opening counterpart
// in it.
func withoutClosers(value []byte) []byte {
	for len(value) > 0 {
		last := value[len(value)-1]
		opens := map[byte]byte{')': '(', ']': '[', '}': '{', '>': '<', '"': '"', '\'': '\'', '`': '`'}[last]
		if opens == 0 || opens != last && bytes.Count(value, []byte{opens}) >= bytes.Count(value, []byte{last}) ||
			opens == last && bytes.Count(value, []byte{last})%2 == 0 {
			return value
		}
		value = value[:len(value)-1]
	}
	return value
}

// endsPlain reports whether an unquoted value ends at p.at. & ends it if the next parameter of a
// query follows.
func (p *reader) endsPlain() bool {
	c := p.text[p.at]
	if c == '&' {
		return nextParameter.Match(p.rest()[:min(40, len(p.rest()))])
	}
	return c < '+' && bytes.IndexByte([]byte(" \t\r\n\"'()"), c) >= 0 || c > '9' &&
		bytes.IndexByte([]byte(";\\<>`{}[]"), c) >= 0 || c == ','
}

var nextParameter = compile(
	`\A&(?:amp;|quot;|apos;|#\d{1,5};|#x[0-9A-Fa-f]{1,4};|lt;|gt;|nbsp;|[A-Za-z_][A-Za-z0-9_.\[\]\-]*=)`)
