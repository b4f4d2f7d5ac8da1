package redact

import "bytes"

// The maximum lengths of names and values that are read around an operator.
const (
	maxName  = 60
	maxValue = 16 << 10
)

// assignment is a value assigned to a name, in any language: NAME = "value", "name": "value",
// NAME=value, setProperty("name", "value"), --name value. assignoperator.go reads what is between
// the name and the value, assignquoted.go and assignplain.go read the value.
type assignment struct {
	name       []byte
	value      []byte
	start, end int // of the value
	quoted     bool
	plain      bool // its syntax does not allow code: NAME=value, --name value
	form       bool // it is one of several in a query: name=value&…
	wide       bool // name and value are separated by spaces or a bar, at the beginning of a line
	call       bool // it is the only argument of a call: setPassword("value")
	flag       bool // its name is a command's flag
	typed      bool // it is unquoted, but has characters that end other unquoted values
	loose      bool // its syntax is also that of text without an assignment: it must look random
	cost       int  // the cost of finding and examining it, in units
}

// assignmentAt reads the assignment whose name contains the word text[at:at+size].
func assignmentAt(text []byte, at, size int) (assignment, bool) {
	start, stop := at, at+size
	for start > 0 && at-start < maxName && isNameByte(text[start-1]) {
		start--
	}
	for stop < len(text) && stop-at < maxName && isNameByte(text[stop]) {
		stop++
	}
	if start > 1 && text[start-1] == ':' && text[start-2] == ':' {
		if m := resourceType.FindIndex(text[max(0, start-maxName):start]); m != nil {
			start -= m[1] - m[0]
			if m := lastOfType.FindIndex(text[stop:min(len(text), stop+maxName)]); m != nil {
				stop += m[1]
			}
		}
	}
	for stop > at+size && (text[stop-1] == '.' || text[stop-1] == '-') { // the operators .= and ->
		stop--
	}
	if start > 0 && bytes.IndexByte([]byte(" \t:"), text[start-1]) >= 0 &&
		describedBefore.Match(text[max(0, start-maxDescribed):start]) {
		return assignment{}, false
	}
	p := &reader{text: text, at: stop, nameStart: start}
	a := assignment{name: text[start:stop], flag: text[start] == '-'}
	closed := p.closers()
	behind := p.at
	if p.byDefault(start) {
		ok := p.value(&a)
		a.charge(p.at - at)
		return a, ok
	}
	isTag := p.markup(&a, start, elements[:1])
	hasOperator := !isTag && p.operator(closed)
	if hasOperator && p.isPort(start) {
		return a, false
	}
	if hasOperator && p.comma && !a.flag && !callBefore.Match(text[max(0, start-8):start]) { // of a list, not of a call
		if a.loose = pairBegins.Match(text[max(0, start-8):start]); !a.loose {
			hasOperator, p.comma, p.at = false, false, behind
		}
	}
	switch {
	case hasOperator:
		a.plain = p.at == stop+1 || bytes.HasSuffix(text[:p.at], []byte(":-"))
	case p.pair(start), p.argument(start):
		a.plain = true
	case p.setter(&a):
		a.call = true
	case p.gap(start):
		a.wide = true
	case isTag, p.markup(&a, start, elements[1:]), closed != ')' && p.stated(), p.tuple(start):
		a.loose = true
	default:
		return a, p.pairBefore(&a, start)
	}
	ok := a.end > 0 && p.finish(&a) || a.end == 0 && p.value(&a)
	a.charge(p.at - at)
	return a, ok && !(a.quoted && p.isName())
}

// isPort reports whether a name that begins at start is the host of a URL, and its port was reached.
func (p *reader) isPort(start int) bool {
	return bytes.HasSuffix(p.text[:start], []byte("://")) && p.text[p.at-1] == ':' && port.Match(p.rest())
}

var port = compile(`\A\d{1,5}(?:[/?#"'\s]|\z)`)

var (
	callBefore = compile(`\([ \t]{0,4}["'` + "`" + `]$`)
	pairBegins = compile(`[\[][ \t]{0,4}\\?["']$`)
	// quotedNext matches the text before a quoted value after a name, as in SetEnv NAME "…", (setq name "…") and
	// NAME is "…".
	quotedNext = compile(`\A[ \t]{1,4}(?:(?:is|was|equals|to|set to|changed to|is now)[ \t]{1,2})?(["'` + "`“«„])")
	// describedBefore matches the text before a name that describes a public key or a key of a table, or the part of an
	// Amazon Resource Name before the name of a secret.
	describedBefore = compile(`(?i)(?:public|primary|foreign|partition|sort|unique|host|cache)[ \t]$|` +
		`\barn:[\w\-]{2,12}:[\w\-]{2,24}:[\w\-]{0,20}:\d{0,12}:$`)
)

// maxDescribed is the maximum number of bytes before a name that describe it.
const maxDescribed = 90

// stated skips the words between a name and a quoted value.
func (p *reader) stated() bool {
	m := quotedNext.FindSubmatchIndex(p.rest())
	if m == nil {
		return false
	}
	p.at += m[2]
	return true
}

// charge sets the cost of an assignment for which the given number of bytes was read.
func (a *assignment) charge(read int) { a.cost = read/4 + 24*len(a.value) + 60 }

// isName reports whether the quoted text that was just read is itself a name, as in a schema whose
// objects are written with line breaks.
func (p *reader) isName() bool { return nameFollows.Match(p.text[p.at:min(len(p.text), p.at+6)]) }

var nameFollows = compile("^\\\\?[\"'`]\\s{0,3}:(?:[ \t\n\"'\\[{]|$)")

func isNameByte(c byte) bool { return isWord(c) || c == '-' || c == '.' }

// resourceType and lastOfType match the parts of a type of CloudFormation before and after a word:
// AWS::IAM::AccessKey.
var (
	resourceType = compile(`(?:AWS|Alexa|Custom)::(?:\w+::)?$`)
	lastOfType   = compile(`^::\w+`)
)

// reader reads an assignment.
type reader struct {
	text      []byte
	at        int
	comma     bool // the operator is a comma: only a quoted value may follow
	nameStart int  // position of the name
	labelled  bool // see isLabelled
	line      bool // the value is the whole line, as in a part of a form
	size      int  // of a quoted value, if it is known
	// parenthesis reports that the value is in parentheses: string literals in several lines are one value.
	parenthesis bool
}

func (p *reader) rest() []byte { return p.text[p.at:min(len(p.text), p.at+100)] }

// blanks skips spaces and tabs, and also line breaks if lines is set.
func (p *reader) blanks(lines bool) {
	for n := 0; n < 40 && p.at < len(p.text); n++ {
		c := p.text[p.at]
		if c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r')) {
			return
		}
		p.at++
	}
}

// finish sets the value of the assignment, without the scheme before it, and reports whether it is
// long enough.
func (p *reader) finish(a *assignment) bool {
	if a.quoted { // spaces within the quotes
		for a.end > a.start && p.text[a.end-1] == ' ' {
			a.end--
		}
		for a.start < a.end && p.text[a.start] == ' ' {
			a.start++
		}
	}
	a.value = judged(p.text[a.start:a.end])
	if word, rest, ok := bytes.Cut(a.value, []byte(" ")); ok && isScheme(word) {
		a.start += len(word) + 1 + len(rest) - len(bytes.TrimLeft(rest, " "))
		a.value = judged(p.text[a.start:a.end])
	}
	return len(a.value) >= 4
}

// isScheme reports whether a word precedes a credential in a header (IANA's registry of HTTP
// authentication schemes, and others in use).
func isScheme(word []byte) bool {
	switch string(bytes.ToLower(word)) {
	case "bearer", "basic", "token", "apikey", "api-key", "api-token", "bot", "digest", "key", "oauth",
		"klaviyo-api-key", "snyk", "ssws", "genie", "splunk":
		return true
	}
	return false
}
