package redact

import (
	"bytes"
	"slices"
)

// The longest names and values that are read around an operator.
const (
	maxName  = 60
	maxValue = 16 << 10
)

// assignment is a value that is given to a name, in whatever language: NAME =
// "value", "name": "value", NAME=value, setProperty("name", "value"), --name value.
type assignment struct {
	name       []byte
	value      []byte
	start, end int // of the value
	quoted     bool
	plain      bool // it stands where no code can: NAME=value, --name value
	form       bool // it is one of several in a query: name=value&…
	wide       bool // only blanks or a bar stand between, at the beginning of a line
	call       bool // it is the one argument of a call: setPassword("value")
	flag       bool // its name is a command's flag
	cost       int  // bytes that were read to find it
}

// assignmentAt reads the assignment whose name has the word text[at:at+size] in it.
func assignmentAt(text []byte, at, size int) (assignment, bool) {
	if text[at+size-1] == '=' { // of pass=
		size--
	}
	start, stop := at, at+size
	for start > 0 && at-start < maxName && isNameByte(text[start-1]) {
		start--
	}
	for stop < len(text) && stop-at < maxName && isNameByte(text[stop]) {
		stop++
	}
	for stop > at+size && (text[stop-1] == '.' || text[stop-1] == '-') { // of .= and ->
		stop--
	}
	p := &reader{text: text, at: stop}
	a := assignment{name: text[start:stop], flag: text[start] == '-'}
	closed := p.closers()
	behind := p.at
	if p.byDefault(start) {
		ok := p.value(&a)
		a.cost = p.at - at
		return a, ok
	}
	hasOperator := p.operator(closed)
	if hasOperator && p.comma && !a.flag && !bytes.HasPrefix(text[max(0, start-2):start], []byte("(")) { // of a list, not of a call
		hasOperator, p.comma, p.at = false, false, behind
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
	default:
		return a, p.pairBefore(&a, start)
	}
	ok := p.value(&a)
	a.cost = p.at - at
	return a, ok && !(a.quoted && p.isName())
}

// isName says whether the quoted text before is a name itself, as in a schema
// whose objects are written with line breaks.
func (p *reader) isName() bool { return nameFollows.Match(p.text[p.at:min(len(p.text), p.at+6)]) }

var nameFollows = compile("^\\\\?[\"'`]\\s{0,3}:(?:[ \t\n\"'\\[{]|$)")

func isNameByte(c byte) bool { return isWord(c) || c == '-' || c == '.' }

// reader goes forward over an assignment.
type reader struct {
	text  []byte
	at    int
	comma bool // the operator is a comma: only a quoted value may follow
}

func (p *reader) rest() []byte { return p.text[p.at:min(len(p.text), p.at+100)] }

// blanks skips spaces and tabs, and line breaks where they may be.
func (p *reader) blanks(lines bool) {
	for n := 0; n < 40 && p.at < len(p.text); n++ {
		c := p.text[p.at]
		if c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r')) {
			return
		}
		p.at++
	}
}

// closers skips what ends the name in its own language, and says what it was:
// 0 for nothing, a quote, or a bracket.
func (p *reader) closers() byte {
	last := byte(0)
	for range 4 {
		if p.at >= len(p.text) {
			return last
		}
		switch c := p.text[p.at]; c {
		case '"', '\'', '`', ')', ']', '}':
			last = c
		case '\\':
		default:
			if bytes.HasPrefix(p.rest(), []byte("&quot;")) {
				p.at += len("&quot;")
				last = '"'
			}
			return last
		}
		p.at++
	}
	return last
}

// operators give a value to a name. Longer ones come first.
var operators = []string{":-", ":::=", "::=", "===", "!==", "||=", "??=", ":=", "?=", ".=", "+=", "=>", "->", "<-", "==", "!=", "||", "??", "=", ":", ","}

// operator skips the operator after a name that ended with closed.
func (p *reader) operator(closed byte) bool {
	from := p.at
	if m := typed.FindIndex(p.text[p.at:min(len(p.text), p.at+60)]); m != nil {
		p.at += m[1]
		return true
	}
	p.blanks(closed == '"' || closed == '\'')
	rest := p.rest()
	if m := sized.FindIndex(rest); m != nil {
		p.at += m[1]
		return true
	}
	i := slices.IndexFunc(operators, func(op string) bool { return bytes.HasPrefix(rest, []byte(op)) })
	if i < 0 || !follows(operators[i], closed) {
		p.at = from
		return false
	}
	p.comma = operators[i] == ","
	p.at += len(operators[i])
	return true
}

// follows says whether an operator can stand behind what closed a name: a comma
// behind a quoted name only, and behind a call only what gives its fallback.
func follows(op string, closed byte) bool {
	isQuote := closed == '"' || closed == '\''
	switch op {
	case ",":
		return isQuote
	case "||", "??", "||=", "??=":
		return true
	}
	return closed != ')'
}

// sized is what PHP's serialize writes between a name and its value.
var sized = compile(`\A;s:\d{1,5}:`)

// typed is a declaration's type between name and operator: var x string =, x: &str =.
var typed = compile(`\A(?:[ \t]{1,4}|[ \t]{0,4}:[ \t]{0,4})&?[A-Za-z][A-Za-z0-9_.<>\[\]?*]{2,24}[ \t]{0,4}:?=`)

// pair is the form in which name and value are members of one object: name:
// DB_PASSWORD, value: secret.
func (p *reader) pair(nameStart int) bool {
	if !labelled.Match(p.text[max(0, nameStart-90):nameStart]) {
		return false
	}
	m := pairValue.FindIndex(p.text[p.at:min(len(p.text), p.at+200)])
	if m == nil {
		return false
	}
	p.at += m[1]
	return true
}

// labelled is what stands before a name that is given as a value itself: name:
// "DB_PASSWORD"; and pairValue what leads from there to the member with the value.
var (
	labelled  = compile(`(?i)(?:name|key|label|var(?:iable)?|header|field|setting|<key>)\\{0,3}["'>]?\s{0,3}[:=]?\s{0,3}\\{0,3}["'` + "`" + `]?(?:[A-Za-z]{0,2}|/[A-Za-z0-9_.\-/]{0,60})$`)
	pairValue = compile(`(?i)\A\s{0,3}(?:,?\s{0,40}\\{0,3}["']?[a-z_]{1,20}\\{0,3}["']?\s{0,3}[:=]\s{0,3}[^,{}\n]{0,40}){0,2}?,?\s{0,40}\\{0,3}["']?(?:value|val|secretvalue|content)\\{0,3}["']?\s{0,3}[:=]|\A"?[ \t]{0,3}\r?\n\r?\n|\A["']?>\s{0,20}<(?:value|val|string)>`)
)

// maxPair is how far before its name a value may begin.
const maxPair = 1200

// pairBefore is the same pair with the value first.
func (p *reader) pairBefore(a *assignment, nameStart int) bool {
	from := max(0, nameStart-maxPair)
	if !labelled.Match(p.text[max(0, nameStart-90):nameStart]) {
		return false
	}
	if i := bytes.LastIndexAny(p.text[from:nameStart], "{["); i >= 0 {
		from += i
	}
	before := p.text[from:nameStart]
	a.cost += len(before)
	m := valueBefore.FindSubmatchIndex(before)
	if m == nil {
		return false
	}
	for group := 2; group < len(m); group += 2 {
		if m[group] >= 0 {
			a.start, a.end, a.quoted, a.plain = from+m[group], from+m[group+1], group < 6, true
			return p.finish(a)
		}
	}
	return false
}

var valueBefore = compile(`(?i)(?:^|[\s{,("'\\-])(?:value|val|content)\\{0,3}["']?\s{0,3}[:=]\s{0,3}(?:\\{0,3}"([^"\n\\]{4,})\\{0,3}"|'([^'\n]{4,})'|([^\s"',{}]{4,}))\s{0,3},?\s{0,40}\\{0,3}["']?(?:name|key|label|var(?:iable)?|header|field|setting)\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?[A-Za-z]{0,2}$`)

// argument is the form in which a blank alone stands between: --name value, ENV NAME value.
func (p *reader) argument(nameStart int) bool {
	if p.at >= len(p.text) || p.text[p.at] != ' ' {
		return false
	}
	isFlag := nameStart+1 < len(p.text) && p.text[nameStart] == '-'
	return isFlag || setsVariable.Match(p.text[max(0, nameStart-16):nameStart])
}

// setsVariable is a command that takes a variable's name and value as words.
var setsVariable = compile(`(?:^|[^A-Za-z])(?:ENV|setenv|setx|set -[a-zA-Z]{1,3}) ["']?$`)

// byDefault is a declaration whose default is the value: Terraform's variable
// "db_password" { default = "…" }, a parameter of CloudFormation.
func (p *reader) byDefault(nameStart int) bool {
	var m []int
	switch {
	case p.at < len(p.text) && p.text[p.at] == ':':
		m = yamlDefault.FindIndex(p.text[p.at:min(len(p.text), p.at+500)])
	case bytes.HasSuffix(p.text[:nameStart], []byte("variable \"")):
		m = terraformDefault.FindIndex(p.text[p.at:min(len(p.text), p.at+500)])
	}
	if m == nil {
		return false
	}
	p.at += m[1]
	return true
}

var (
	terraformDefault = compile(`\A\s{0,3}\{[^{}]{0,400}?\bdefault\s{0,20}=`)
	yamlDefault      = compile(`\A:[ \t]*\r?\n(?:[ \t]+[A-Za-z]+:[^\n]*\n){0,8}?[ \t]+Default:`)
)

// setter is a call that gives the value to the name: setPassword("…"),
// .withToken("…"), .password("…").
func (p *reader) setter(a *assignment) bool {
	if !isSetter.Match(a.name) || !callBegins.Match(p.rest()) {
		return false
	}
	p.at++
	return true
}

var (
	isSetter   = compile(`(?i)(?:^|\.)(?:set|with|use|add|put)_?[a-z_]+$|\.[a-z_]+$`)
	callBegins = compile(`\A\(\s{0,20}(?:"[^"\n]{4,}"|'[^'\n]{4,}')\s{0,20}\)`)
)

// gap is the form of lists that are aligned: a name at the beginning of its line,
// blanks or a bar, and the value.
func (p *reader) gap(nameStart int) bool {
	for nameStart > 0 && bytes.IndexByte([]byte(" \t|"), p.text[nameStart-1]) >= 0 {
		nameStart--
	}
	m := gapBefore.FindIndex(p.rest())
	if m == nil || nameStart > 0 && p.text[nameStart-1] != '\n' {
		return false
	}
	p.at += m[1] - 1
	return true
}

var gapBefore = compile(`\A(?:\t[ \t]{0,40}| {2,60}| {0,40}\| {0,20})(?:[^\s|])`)

// value reads the value, with or without quotes.
func (p *reader) value(a *assignment) bool {
	if m := valueWrapper.FindIndex(p.rest()); m != nil {
		p.at += m[1]
	}
	from := p.at
	p.blanks(true)
	lines := bytes.IndexByte(p.text[from:p.at], '\n') >= 0
	quote := p.quote()
	if quote == nil {
		return !p.comma && !lines && p.plain(a)
	}
	a.quoted = true
	if len(quote) == 3 && p.at < len(p.text) && p.text[p.at] == '\n' {
		p.at++
	}
	a.start = p.at
	for p.at < len(p.text) && p.at-a.start <= maxValue {
		switch {
		case bytes.HasPrefix(p.text[p.at:], quote):
			a.end = p.at
			return p.finish(a)
		case p.text[p.at] == '\n':
			a.end = p.at
			return len(quote) == 3 && p.finish(a)
		case p.text[p.at] == '\\' && quote[0] != '\\':
			p.at++
		}
		p.at++
	}
	if p.at < len(p.text) || p.at-a.start < minTruncated {
		return false
	}
	a.end = len(p.text) // the text was cut within the value
	return p.finish(a)
}

// valueWrapper is what stands around a value in some languages: YAML's tags,
// anchors and block scalars, constructors, an object with the value as a member,
// the length that PHP's var_dump writes.
var valueWrapper = compile(`\A(?:[ \t]{1,4}(?:[|>][-+0-9]{0,2}[ \t]{0,4}\r?\n[ \t]{1,40}|!!str[ \t]{1,4}|&[\w\-]{1,30}[ \t]{1,4})` +
	`|[ \t]{0,4}(?:default|default_value|fallback)[ \t]{0,3}=[ \t]{0,3}` +
	`|[ \t]{0,4}(?:Some|Just|String::from|SecretStr|SecretString|SecretValue)\([ \t]{0,4}` +
	`|\s{0,10}\{\s{0,40}\\{0,3}["'](?:value|S|string_?value|plain_?[tT]ext)\\{0,3}["'][ \t]{0,3}:` +
	`|\s{0,20}string\(\d{1,5}\) )`)

// minTruncated is the shortest value that the end of a text may stand in for its quote.
const minTruncated = 8

// quote skips an opening quote, with the letters that some languages put
// before it, and returns what will close it.
func (p *reader) quote() []byte {
	m := opening.FindSubmatchIndex(p.text[p.at:min(len(p.text), p.at+12)])
	if m == nil {
		return nil
	}
	quote := p.text[p.at+m[2] : p.at+m[3]]
	p.at += m[1]
	return quote
}

var opening = compile(`\A(?:[A-Za-z]{1,2}|[@$])?("""|'''|"|'|` + "`" + `|\\{1,3}["']|&quot;)`)

// plain reads a value without quotes. What goes on as code or as a template is none.
func (p *reader) plain(a *assignment) bool {
	a.start = p.at
	for p.at < len(p.text) && p.at-a.start <= maxValue && !p.endsPlain() {
		p.at++
	}
	if p.at < len(p.text) && bytes.IndexByte([]byte("({["), p.text[p.at]) >= 0 {
		return false
	}
	a.end = p.at
	a.form = p.at < len(p.text) && p.text[p.at] == '&'
	if isScheme(p.text[a.start:a.end]) && p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
		return p.plain(a)
	}
	return p.finish(a)
}

// endsPlain says whether a value without quotes ends here. & ends it where the
// next part of a query follows.
func (p *reader) endsPlain() bool {
	c := p.text[p.at]
	if c == '&' {
		return nextParameter.Match(p.rest()[:min(40, len(p.rest()))])
	}
	return c < '+' && bytes.IndexByte([]byte(" \t\r\n\"'()"), c) >= 0 || c > '9' && bytes.IndexByte([]byte(";\\<>`{}[]"), c) >= 0 || c == ','
}

var nextParameter = compile(`\A&(?:amp;|quot;|apos;|#\d{1,5};|#x[0-9A-Fa-f]{1,4};|lt;|gt;|nbsp;|[A-Za-z_][A-Za-z0-9_.\[\]\-]*=)`)

// finish takes off what belongs to the way the value is written.
func (p *reader) finish(a *assignment) bool {
	a.value = p.text[a.start:a.end]
	if word, rest, ok := bytes.Cut(a.value, []byte(" ")); ok && isScheme(word) {
		a.value = bytes.TrimLeft(rest, " ")
		a.start = a.end - len(a.value)
	}
	return len(a.value) >= 4
}

// isScheme says whether a word is what comes before a credential in a header
// (IANA's registry of HTTP authentication schemes, and others in use).
func isScheme(word []byte) bool {
	switch string(bytes.ToLower(word)) {
	case "bearer", "basic", "token", "apikey", "api-key", "api-token", "bot", "digest", "key", "oauth", "klaviyo-api-key", "snyk", "ssws", "genie", "splunk":
		return true
	}
	return false
}
