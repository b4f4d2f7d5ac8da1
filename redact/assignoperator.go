package redact

import (
	"bytes"
	"slices"
	"strconv"
	"sync"
)

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
		case '*': // Markdown's bold
			if last = 0; p.at+1 == len(p.text) || p.text[p.at+1] != '*' {
				return last
			}
			p.at++
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
	"==", "!=", "||", "??", "：", "＝", "→", "⇒", "—", "=", ":", ",", "{"}

// operator skips the operator after a name. closed is the result of closers.
func (p *reader) operator(closed byte) bool {
	from := p.at
	if m := typed.FindSubmatchIndex(p.text[p.at:min(len(p.text), p.at+60)]); m != nil && p.text[p.nameStart] != '-' {
		p.at += max(m[3], m[5])
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

// typed matches the type of a declaration between name and operator, which is one of its groups: var x string =,
// x: &str =. Without a space before it, a quote must follow: name=value can also be a value.
var typed = compile(`\A(?:(::[ \t]|\[\d{0,5}\][ \t]{0,4}=|(?i:[ \t]{1,4}As[ \t]{1,4}String[ \t]{0,4}=)|` +
	typeOfName + `[ \t]{1,4}:?=)|(` + typeOfName + `:?=)[ \t]{0,4}(?:\z|["'\\&` + "`" + `]))`)

const typeOfName = `(?:[ \t]{1,4}|[ \t]{0,4}[?!]?:[ \t]{0,4})&?[A-Za-z][A-Za-z0-9_.<>\[\]?*]{2,24}`

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
var setsVariable = compile(`(?:^|[^A-Za-z])(?:ENV|setenv|setx|set -[a-zA-Z]{1,3}|` +
	`fastcgi_param|uwsgi_param|insecure-password) ["']?$`)

// byDefault reads a declaration whose default is the value: Terraform's variable "db_password" {
// default = "…" }, a parameter of CloudFormation, a property of YAML with a member value.
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
	// A member without a value begins another object.
	yamlDefault = compile(`\A:[ \t]*\r?\n(?:[ \t]+[A-Za-z]+:[ \t]+[^\n]+\n){0,8}?[ \t]+(?:[Dd]efault|[Vv]alue):`)
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

var gapBefore = compile(`\A(?:\t[ \t]{0,40}| {2,60}| {0,40}\| {0,20}| {0,4}\.{3,60}:? {1,4})(?:[^\s|])`)
