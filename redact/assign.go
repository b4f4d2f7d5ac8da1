package redact

import (
	"bytes"
	"slices"
	"strconv"
	"sync"
)

// The maximum lengths of names and values that are read around an operator.
const (
	maxName  = 60
	maxValue = 16 << 10
)

// assignment is a value assigned to a name, in any language: NAME = "value", "name": "value",
// NAME=value, setProperty("name", "value"), --name value.
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
	if text[at+size-1] == '=' { // the = of pass=
		size--
	}
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
	case isTag, p.markup(&a, start, elements[1:]), closed != ')' && quotedNext.Match(p.rest()), p.tuple(start):
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
	// quotedNext matches a quoted value after a name, as in SetEnv NAME "…" and (setq name "…").
	quotedNext = compile(`\A[ \t]{1,4}["'` + "`]")
)

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

// closers skips the characters that end the name, and returns the last one: a quote, a bracket, or
// 0 if there was none.
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

// operators are the assignment operators. Longer ones come first.
var operators = []string{":-", ":::=", "::=", "===", "!==", "||=", "??=", ":=", "?=", ".=", "+=", "=>", "->", "<-",
	"==", "!=", "||", "??", "=", ":", ",", "{"}

// operator skips the operator after a name. closed is the result of closers.
func (p *reader) operator(closed byte) bool {
	from := p.at
	if m := typed.FindIndex(p.text[p.at:min(len(p.text), p.at+60)]); m != nil && p.text[p.nameStart] != '-' {
		p.at += m[1]
		return true
	}
	p.blanks(closed == '"' || closed == '\'')
	rest := p.rest()
	if m := sized.FindSubmatchIndex(rest); m != nil {
		p.size, _ = strconv.Atoi(string(rest[m[2]:m[3]]))
		p.at += m[1]
		return true
	}
	i := slices.IndexFunc(operators, func(op string) bool { return bytes.HasPrefix(rest, []byte(op)) })
	if i < 0 || !follows(operators[i], closed) {
		p.at = from
		return false
	}
	if operators[i] == "{" && !initializer.Match(rest) {
		p.at = from
		return false
	}
	p.comma = operators[i] == ","
	p.at += len(operators[i])
	return true
}

// follows reports whether an operator can follow the end of a name. A comma can only follow a
// quoted name, and only an operator for a fallback can follow a call.
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

// sized matches what PHP's serialize writes between a name and its value.
var sized = compile(`\A;s:(\d{1,5}):`)

// initializer matches a value in braces, as in C++.
var initializer = compile(`\A\{\s{0,40}(?:"[^"\n]{8,200}"\s{0,40}\}|(?:u8|[uUL])?R")`)

// typed matches the type of a declaration between name and operator: var x string =, x: &str =.
var typed = compile(`\A(?:::[ \t]|\[\d{0,5}\][ \t]{0,4}=|(?i:[ \t]{1,4}As[ \t]{1,4}String[ \t]{0,4}=)|` +
	`(?:[ \t]{1,4}|[ \t]{0,4}[?!]?:[ \t]{0,4})&?[A-Za-z][A-Za-z0-9_.<>\[\]?*]{2,24}[ \t]{0,4}:?=)`)

// pair reads the form in which name and value are members of one object: name: DB_PASSWORD, value:
// secret.
func (p *reader) pair(nameStart int) bool {
	if !p.isLabelled(nameStart) {
		return false
	}
	m := pairValue.FindIndex(p.text[p.at:min(len(p.text), p.at+200)])
	if m == nil {
		return false
	}
	p.at += m[1]
	p.line = bytes.Contains(p.text[max(0, nameStart-90):nameStart], []byte("form-data"))
	return true
}

// isLabelled reports whether the name is the value of a member such as name or key.
func (p *reader) isLabelled(nameStart int) bool {
	before := p.text[max(0, nameStart-90):nameStart]
	hasWord := false
	labelWords().scan(before, func(int, int) bool { hasWord = true; return false })
	p.labelled = hasWord && labelled.Match(before)
	return p.labelled
}

var labelWords = sync.OnceValue(func() *automaton {
	return newAutomaton([]string{"name", "key", "label", "var", "header", "field", "setting"})
})

// labelled matches the text before a name that is itself a value, as in name: "DB_PASSWORD".
// pairValue matches the text from there to the member with the value.
var (
	labelled = compile(
		`(?i)(?:name|key|label|var(?:iable)?|header|field|setting|<key>)\\{0,3}["'>]?\s{0,3}[:=]?\s{0,3}\\{0,3}["'` +
			"`" + `]?(?:[A-Za-z]{0,2}|/[A-Za-z0-9_.\-/]{0,60})$`)
	pairValue = compile(
		`(?i)\A\s{0,3}(?:,?\s{0,40}\\{0,3}["']?[a-z_]{1,20}\\{0,3}["']?\s{0,3}[:=]\s{0,3}[^,` +
			`{}\n]{0,40}){0,2}?,?\s{0,40}\\{0,3}["']?(?:[a-z_]{0,20}value|val|content)\\{0,3}["']?\s{0,3}[:=]|` +
			`\A"?[ \t]{0,3}\r?\n(?:Content-[A-Za-z\-]{4,30}:[^\r\n]{0,60}\r?\n){0,3}\r?\n|` +
			`\A["']?>\s{0,20}<(?:value|val|string)>`)
)

// maxPair is the maximum number of bytes between the beginning of a value and its name.
const maxPair = 1200

// pairBefore reads the same pair with the value first.
func (p *reader) pairBefore(a *assignment, nameStart int) bool {
	from := max(0, nameStart-maxPair)
	if !p.labelled {
		a.charge(0)
		return false
	}
	begin := bytes.LastIndexByte(p.text[from:nameStart], '<')
	if begin < 0 {
		begin = bytes.LastIndexAny(p.text[from:nameStart], "{[")
	}
	from += max(0, begin)
	line := p.text[max(0, from-maxTyped):from]
	if m := valueBegins.FindIndex(line); begin >= 0 && m != nil { // the character is one of the value
		from += m[0] - len(line)
	}
	before := p.text[from:nameStart]
	a.cost = 500 + 4*len(before)
	m := valueBefore.FindSubmatchIndex(before)
	for group := 2; group < len(m); group += 2 {
		if m[group] >= 0 {
			a.start, a.end, a.quoted, a.plain = from+m[group], from+m[group+1], group < 6, true
			return p.finish(a)
		}
	}
	return false
}

// valueBegins matches the beginning of a line or member with a quoted value.
var valueBegins = compile(
	`(?i)(?:^|[\s{,("'\\-])(?:value|val|content)\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["'][^\n"']*$`)

var valueBefore = compile(
	`(?i)(?:^|[\s{,("'\\-])(?:value|val|content)\\{0,3}["']?\s{0,3}[:=]\s{0,3}(?:\\{0,3}"([^"\n\\]{4,})\\{0,3}"|` +
		`'([^'\n]{4,})'|([^\s"',{}]{4,}))(?:\s{1,3}[a-z\-]{1,20}=["'][^"'\n]{0,40}["']){0,4}` +
		`\s{0,3},?\s{0,40}\\{0,3}["']?(?:name|key|label|var(?:iable)?|header|field|` +
		`setting)\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?[A-Za-z]{0,2}$`)

// argument reads the form with only a space between: --name value, ENV NAME value.
func (p *reader) argument(nameStart int) bool {
	if p.at >= len(p.text) || p.text[p.at] != ' ' {
		return false
	}
	isFlag := nameStart+1 < len(p.text) && p.text[nameStart] == '-'
	return isFlag || setsVariable.Match(p.text[max(0, nameStart-16):nameStart])
}

// setsVariable matches a command that takes the name and the value of a variable as arguments.
var setsVariable = compile(`(?:^|[^A-Za-z])(?:ENV|setenv|setx|set -[a-zA-Z]{1,3}) ["']?$`)

// byDefault reads a declaration whose default is the value: Terraform's variable "db_password" {
// default = "…" }, a parameter of CloudFormation.
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

// setter reads a call that sets the value: setPassword("…"), .withToken("…"), .password("…").
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

// gap reads the form of aligned lists: a name at the beginning of its line, spaces or a bar, and
// the value.
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
	if m := valueWrapper.FindSubmatchIndex(p.text[p.at:min(len(p.text), p.at+maxWrapper)]); m != nil {
		p.at += m[1]
		p.line = m[2] >= 0
	}
	if p.line {
		return p.block(a)
	}
	if m := inBrackets.FindIndex(p.rest()); m != nil {
		p.parenthesis = bytes.IndexByte(p.text[p.at:p.at+m[1]], '(') >= 0
		p.at += m[1] - 1
		a.loose = true
	}
	if !p.comma && p.raw(a) {
		return p.finish(a)
	}
	from := p.at
	p.blanks(true)
	lines := bytes.IndexByte(p.text[from:p.at], '\n') >= 0
	var quote []byte
	// in a query a quote is part of the value
	if before := p.text[max(0, p.nameStart-1)]; before != '?' && before != '&' {
		quote = p.quote()
	}
	if quote == nil {
		a.loose = a.loose || lines
		return !p.comma && p.plain(a) && (!lines || p.isOnlyLine(from, a))
	}
	a.quoted = true
	if len(quote) == 3 && p.at < len(p.text) && p.text[p.at] == '\n' {
		p.at++
	}
	a.start = p.at
	if end := a.start + p.size; p.size > 0 && end < len(p.text) && bytes.HasPrefix(p.text[end:], quote) {
		a.end, p.at = end, end
		return p.finish(a)
	}
	escaped := -1 // the first quote after a backslash, which ends the value in some languages
	for p.at < len(p.text) && p.at-a.start <= maxValue {
		c := p.text[p.at]
		switch {
		case c == quote[0] && bytes.HasPrefix(p.text[p.at:], quote):
			if size := p.reopens(quote, a.start); size > 0 {
				p.at += size
				continue
			}
			a.end = p.at
			return p.parts(a, quote)
		case c == '\n':
			a.end = p.at
			if len(quote) != 3 && escaped >= 0 {
				a.end, p.at = escaped, escaped
				return p.finish(a)
			}
			return len(quote) == 3 && p.finish(a)
		case c == '\\' && p.literal(quote):
		case c == '\\':
			if p.at+1 < len(p.text) && p.text[p.at+1] == quote[0] && escaped < 0 {
				escaped = p.at + 1
			}
			p.at++
			for quote[0] == '\\' && p.at < len(p.text) && p.text[p.at] == '\\' { // a string within a string
				p.at++
			}
		}
		p.at++
	}
	if escaped >= 0 && (p.at < len(p.text) || escaped+1 < len(p.text) && isDelimiter(p.text[escaped+1])) {
		a.end, p.at = escaped, escaped
		return p.finish(a)
	}
	p.at = min(p.at, len(p.text)) // a backslash may be the last character
	if p.at < len(p.text) || p.at-a.start < minTruncated {
		return false
	}
	a.end = len(p.text) // the text was cut within the value
	return p.finish(a)
}

// reopens returns the size of a closing quote after which the value continues, or 0. It is a
// doubled quote or, in a shell, a quote between two quoted parts.
func (p *reader) reopens(quote []byte, start int) int {
	if len(quote) != 1 {
		return 0
	}
	rest := p.text[p.at:min(len(p.text), p.at+8)]
	for _, again := range reopened[quote[0]] {
		if bytes.HasPrefix(rest, []byte(again)) {
			return len(again)
		}
	}
	if len(rest) > 1 && rest[1] == quote[0] && (p.at > start || len(rest) > 2 && !isDelimiter(rest[2])) {
		return 2
	}
	return 0
}

// literal reports whether the backslash at p.at is an ordinary character of a text in single
// quotes, as in a shell, in YAML and in SQL: the quote after it ends the text or is doubled.
func (p *reader) literal(quote []byte) bool {
	if len(quote) != 1 || quote[0] != '\'' {
		return false
	}
	rest := p.text[p.at+1 : min(len(p.text), p.at+8)]
	for _, again := range reopened['\''] {
		if bytes.HasPrefix(rest, []byte(again)) {
			return true
		}
	}
	return len(rest) > 2 && rest[0] == '\'' && rest[1] == '\'' && !isDelimiter(rest[2])
}

// isDelimiter reports whether a character can follow the closing quote of a value.
func isDelimiter(c byte) bool { return bytes.IndexByte([]byte(" \t\r\n,;:)]}>&|"), c) >= 0 }

// reopened are the ways to write a quote within a quoted text of a shell.
var reopened = map[byte][]string{'\'': {`'\''`, `'"'"'`}, '"': {`"'"'"`, `"\""`}}

// block reads a value that ends with its line: the first line of a block of YAML or of a heredoc, or a part of a form.
// It counts as quoted.
func (p *reader) block(a *assignment) bool {
	a.start, a.quoted = p.at, true
	for p.at < len(p.text) && p.at-a.start <= maxValue && p.text[p.at] != '\n' && p.text[p.at] != '\r' {
		p.at++
	}
	a.end = p.at
	return p.finish(a)
}

// valueWrapper matches the text before a value in some languages: block scalars of YAML and heredocs, which are its
// group, tags and anchors of YAML, constructors, an object with the value as a member, the length printed by PHP's
// var_dump.
var valueWrapper = compile(
	`\A(?:\*{2}[ \t]{1,4}` +
		`|([ \t]{1,4}[|>][-+0-9]{0,2}[ \t]{0,4}(?:#[^\n]{0,80})?\r?\n[ \t]{1,40}` +
		`|[ \t]{0,4}<<[-~]?["']?[A-Za-z_]\w{0,30}["']?\r?\n[ \t]{0,40})` +
		`|[ \t]{1,4}(?:!!str[ \t]{1,4}|&[\w\-]{1,30}[ \t]{1,4})` +
		`|[ \t]{0,4}(?:default|default_value|fallback)[ \t]{0,3}=[ \t]{0,3}` +
		`|[ \t]{0,4}(?:Some|Just|String::from|SecretStr|SecretString|SecretValue)\([ \t]{0,4}` +
		`|\s{0,10}\{\s{0,40}(?:\\{0,3}"[a-z_]{1,20}\\{0,3}":\s{0,3}[\w\\"]{1,20},\s{0,40}){0,3}` +
		`\\{0,3}["'](?:value|S|string_?value|plain_?[tT]ext)\\{0,3}["'][ \t]{0,3}:` +
		`|\s{0,20}string\(\d{1,5}\) )`)

// maxWrapper is the maximum length of such a text.
const maxWrapper = 300

// inBrackets matches the beginning of a quoted value in parentheses, or of a list.
var inBrackets = compile(`\A[ \t]{0,4}[(\[]\s{0,40}["'` + "`]")

// minTruncated is the minimum length of a quoted value that the end of the text cuts off before its
// closing quote.
const minTruncated = 8

// quote skips an opening quote and the letters that some languages put before it, and returns the
// closing quote.
func (p *reader) quote() []byte {
	m := opening.FindSubmatchIndex(p.text[p.at:min(len(p.text), p.at+12)])
	if m == nil {
		return nil
	}
	quote := p.text[p.at+m[2] : p.at+m[3]]
	p.at += m[1]
	if len(quote) == 3 && quote[0] != '\\' && !bytes.Contains(p.text[p.at:min(len(p.text), p.at+maxValue)], quote) {
		p.at -= 2 // one quote, followed by a doubled one
		return quote[:1]
	}
	return quote
}

var opening = compile(`\A(?:[A-Za-z]{1,2}|[@$])?("""|'''|"|'|` + "`" + `|\\{1,3}["']|&quot;)`)

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
