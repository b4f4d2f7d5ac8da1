package sqltext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	symbol    kind = iota // an operator or a punctuation mark
	word                  // a keyword or a name, in lower case
	name                  // a quoted name
	literal               // a string in single quotes
	number                // also a parameter such as $1, :id or @id
	parameter             // such as $1 or @id
)

// token is a part of a statement. Some databases read the rest of a line after "#" or "--x" as a
// comment and others do not: tokens in this part have a tail.
type token struct {
	text  string
	kind  kind
	tail  tail
	first bool // the first token of its line
}

// tail is the set of possible comments that started before a token on its line.
type tail uint8

const (
	hashTail tail = 1 << iota // "#", a comment in MySQL
	dashTail                  // "--" without a space, not a comment in MySQL
)

func (t token) is(text string) bool { return t.kind == symbol && t.text == text }

// lexer splits a text into tokens that every dialect splits in the same way.
type lexer struct {
	text    string
	at      int
	tokens  []token
	tail    tail
	first   bool
	bracket bool   // SQL Server reads a quoted name here
	problem string // why dialects may differ; empty if they agree
	open    bool   // a quote or a comment is not closed
	word    int    // the end of the last word
	depth   int    // of parentheses
}

// lex returns the tokens of a text. A problem means that dialects may disagree
// about where tokens begin and end, and that the tokens must not be used.
func lex(sql string) (tokens []token, problem string, open bool) {
	l := lexer{text: sql, first: true, word: -1, tokens: make([]token, 0, len(sql)/5+8)}
	if !utf8.ValidString(sql) {
		return nil, "the text is not valid UTF-8", false
	}
	for l.at < len(sql) && l.problem == "" {
		l.next()
	}
	if l.problem == "" && l.bracket {
		l.unclosed("a bracket")
	}
	return l.tokens, l.problem, l.open
}

func (l *lexer) differ(problem string) { l.problem = problem }

func (l *lexer) unclosed(what string) { l.problem, l.open = what+" has no end", true }

func (l *lexer) add(k kind, text string) {
	l.tokens = append(l.tokens, token{text: text, kind: k, tail: l.tail, first: l.first})
	l.first = false
}

// peek returns the byte n positions ahead, or 0 at the end.
func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.text) {
		return l.text[l.at+n]
	}
	return 0
}

func (l *lexer) next() {
	rest := l.text[l.at:]
	switch c := rest[0]; {
	case c == ' ' || c == '\t':
		l.at++
	case c == '\n':
		l.at, l.first, l.tail = l.at+1, true, 0
	case c == '\r':
		if l.tail != 0 && l.peek(1) != '\n' {
			l.differ("a carriage return ends a comment in some databases")
		}
		l.at, l.first = l.at+1, true
	case strings.HasPrefix(rest, "--"):
		l.dashes()
	case strings.HasPrefix(rest, "/*"):
		l.comment()
	case c == '\'' || c == '"':
		l.quoted(c)
	case c == '`':
		l.backtick()
	case c == '$':
		l.dollar()
	case c == '[' || c == ']':
		l.brackets(c)
	case isDigit(c) || c == '.' && isDigit(l.peek(1)):
		l.number()
	case c == '_' || isLetter(c) || c >= utf8.RuneSelf:
		l.plainWord()
	case c == '@' && (isVariable(l.peek(1)) || l.peek(1) == '@' && isVariable(l.peek(2))):
		l.variable()
	case strings.IndexByte("(),;.:", c) >= 0:
		l.punctuation(c)
	case strings.IndexByte(operatorBytes, c) >= 0:
		l.operator()
	default:
		l.differ("the character " + quoted(c) + " outside of strings means different things to databases")
	}
}

func quoted(c byte) string {
	if c < ' ' || c > '~' {
		return "with the code " + string("0123456789ABCDEF"[c>>4]) + string("0123456789ABCDEF"[c&15])
	}
	return string(c)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isVariable reports whether a byte can start the name of a variable, such as @id.
func isVariable(c byte) bool { return c == '_' || isLetter(c) }

func (l *lexer) variable() {
	n := 1
	for c := l.peek(n); isVariable(c) || isDigit(c) || c == '@' || c == '$' || c == '.'; c = l.peek(n) {
		n++
	}
	l.add(parameter, l.text[l.at:l.at+n])
	l.at += n
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// endings are characters that end a line for some readers.
const endings = "\r\v\f\x00\u0085\u2028\u2029"

// dashes reads "--". Followed by a space it is a comment in all databases. Otherwise MySQL reads
// two minus signs.
func (l *lexer) dashes() {
	if rest := l.text[l.at+2:]; rest != "" && strings.IndexByte(" \t\r\n", rest[0]) < 0 {
		l.tail |= dashTail
		l.add(symbol, "-")
		l.add(symbol, "-")
		l.at += 2
		if l.bracket {
			l.differ("a comment begins between brackets")
		}
		return
	}
	body, _, _ := strings.Cut(l.text[l.at+2:], "\n")
	switch {
	case strings.ContainsAny(strings.TrimSuffix(body, "\r"), endings):
		l.differ("a comment has a character that ends a line in some databases")
	case l.bracket:
		l.differ("a comment begins between brackets")
	}
	l.at += 2 + len(body)
}

func (l *lexer) comment() {
	body, _, closed := strings.Cut(l.text[l.at+2:], "*/")
	switch {
	case !closed:
		l.unclosed("a comment")
	case strings.Contains(body+"*", "/*"):
		l.differ("a comment in a comment: databases disagree about its end")
	case strings.HasPrefix(body, "!") || strings.HasPrefix(body, "+") || strings.HasPrefix(strings.ToLower(body), "m!"):
		l.differ("some databases execute a comment that begins with /*! or /*+")
	case strings.Contains(body, "\x00") || l.bracket || l.tail != 0 && strings.ContainsAny(body, "\n\r"):
		l.differ("databases disagree about where a comment begins or ends")
	}
	l.at += 2 + len(body) + 2
}

// lookalikes are characters that conversions between encodings may turn into
// quotes, backslashes and semicolons.
const lookalikes = "\x00\u02b9\u02ba\u02bb\u02bc\u02c8\u2032\u2033\u2035\uff02\uff07\uff3c\uff1b\ufe68"

// quoted reads a string, or a name in double quotes. A doubled quote is part of it.
func (l *lexer) quoted(quote byte) {
	if quote == '\'' && l.word == l.at && len(l.tokens) > 0 {
		switch l.tokens[len(l.tokens)-1].text {
		case "q", "nq", "r", "br", "rb": // Oracle and BigQuery
			l.differ("a string with the prefix q or r ends where the dialect wants it to")
			return
		}
	}
	s := l.text
	for i := l.at + 1; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			end := i
			for end < len(s) && s[end] == '\\' {
				end++
			}
			if end < len(s) && s[end] == quote {
				l.differ("a backslash before a quote escapes it in some databases; double the quote instead")
				return
			}
			i = end - 1
		case s[i] != quote:
		case i+1 < len(s) && s[i+1] == quote:
			if i == l.at+1 || i+2 < len(s) && s[i+2] == quote {
				l.differ("three quotes in a row begin or end a string in some databases")
				return
			}
			i++
		default:
			l.closed(s[l.at+1:i], quote)
			return
		}
	}
	l.unclosed("a quote")
}

func (l *lexer) closed(text string, quote byte) {
	switch {
	case strings.ContainsAny(text, lookalikes):
		l.differ("a string has a character that some databases turn into a quote")
	case l.bracket && strings.ContainsAny(text, "[]"), l.tail != 0 && strings.ContainsAny(text, endings+"\n"):
		l.differ("databases disagree about where a string begins or ends")
	}
	if quote == '\'' {
		l.add(literal, "")
	} else {
		l.add(name, strings.ToLower(text))
	}
	l.at += len(text) + 2
}

// backtick reads a name in the syntax of MySQL and SQLite. The backtick is an operator in
// PostgreSQL, so the name must be a plain word.
func (l *lexer) backtick() {
	text, _, closed := strings.Cut(l.text[l.at+1:], "`")
	plain := !strings.ContainsFunc(text, func(r rune) bool {
		return r >= utf8.RuneSelf || !isLetter(byte(r)) && !isDigit(byte(r)) && strings.IndexByte("_ $.-", byte(r)) < 0
	})
	switch {
	case !closed:
		l.unclosed("a quote")
	case text == "" || !plain || strings.Contains(text, "--") || l.afterNonASCII():
		l.differ("a name in backticks has characters that are not letters or digits")
	}
	l.add(name, strings.ToLower(text))
	l.at += len(text) + 2
}

// afterNonASCII reports whether encodings such as GBK may read the next byte as
// the second half of a character.
func (l *lexer) afterNonASCII() bool { return l.at > 0 && l.text[l.at-1] >= utf8.RuneSelf }

// dollar reads a parameter. PostgreSQL also quotes strings with dollar signs.
func (l *lexer) dollar() {
	n := 1
	named := isLetter(l.peek(1))
	for c := l.peek(n); isDigit(c) || named && isVariable(c); c = l.peek(n) {
		n++
	}
	if after := l.peek(n); n == 1 || after == '$' || after == '_' || isLetter(after) || after >= utf8.RuneSelf {
		l.differ("PostgreSQL quotes strings with dollar signs, other databases do not")
		return
	}
	l.add(parameter, l.text[l.at:l.at+n])
	l.at += n
}

func (l *lexer) brackets(c byte) {
	if l.afterNonASCII() || c == ']' && l.peek(1) == ']' {
		l.differ("databases disagree about where a name in brackets ends")
		return
	}
	l.bracket = c == '['
	l.add(symbol, string(c))
	l.at++
}

func (l *lexer) number() {
	n := 0
	digits := func() {
		for isDigit(l.peek(n)) {
			n++
		}
	}
	if l.peek(0) == '0' && l.peek(1)|0x20 == 'x' {
		for n = 2; isDigit(l.peek(n)) || l.peek(n)|0x20 >= 'a' && l.peek(n)|0x20 <= 'f'; n++ {
		}
	} else {
		digits()
		if l.peek(n) == '.' {
			n++
			digits()
		}
		if exponent := l.peek(n) | 0x20; exponent == 'e' {
			sign := 0
			if c := l.peek(n + 1); c == '+' || c == '-' {
				sign = 1
			}
			if isDigit(l.peek(n + 1 + sign)) {
				n += 1 + sign
				digits()
			}
		}
	}
	if c := l.peek(n); c == '_' || c == '$' || isLetter(c) || c >= utf8.RuneSelf {
		l.differ("letters follow a number without a space: some databases read a number and a word, others a name")
		return
	}
	l.add(number, "")
	l.at += n
}

// foldable are characters that look like ASCII letters, or are folded to them.
var foldable = &unicode.RangeTable{
	R16: []unicode.Range16{{0x0130, 0x0131, 1}, {0x017f, 0x017f, 1}, {0x2100, 0x214f, 1}, {0xff00, 0xffef, 1}},
	R32: []unicode.Range32{{0x1d400, 0x1d7ff, 1}},
}

// plainWord reads a keyword or a name without quotes.
func (l *lexer) plainWord() {
	rest := l.text[l.at:]
	end := 0
	for end < len(rest) {
		c := rest[end]
		if c < utf8.RuneSelf {
			if c != '_' && c != '$' && !isLetter(c) && !isDigit(c) {
				break
			}
			end++
			continue
		}
		r, size := utf8.DecodeRuneInString(rest[end:])
		if !unicode.In(r, unicode.L, unicode.Nd, unicode.Mn, unicode.Mc) || unicode.Is(foldable, r) {
			l.differ("a character outside of strings is a space or a letter to some databases only")
			return
		}
		end += size
	}
	l.add(word, strings.ToLower(rest[:end]))
	l.at += end
	l.word = l.at
}

// maxDepth is the maximum nesting depth of parentheses.
const maxDepth = 500

func (l *lexer) punctuation(c byte) {
	switch c {
	case '(':
		l.depth++
	case ')':
		l.depth--
	}
	switch {
	case l.depth > maxDepth:
		l.differ("parentheses are nested too deep")
	case c == ';' && l.bracket:
		l.differ("a semicolon between brackets")
	case c == ':' && l.peek(1) == '=':
		l.differ(":= assigns a value")
	case c == '.' && l.peek(1) == '.':
		l.differ("two dots in a row")
	case c == ':' && l.peek(1) == ':':
		l.add(symbol, "::")
		l.at += 2
		return
	}
	l.add(symbol, string(c))
	l.at++
}

const operatorBytes = "+-*/<>=~!@#%^&|?"

// operators are the built-in operators of databases. PostgreSQL lets users define others, which
// call functions.
var operators = strings.Fields(`+ - * / % %% ^ = == <> != < > <= >= || && & | ~ << >> ~* !~ !~* ~~ ~~* !~~ !~~*
	-> ->> #> #>> #- # ## @> <@ @@ @? @ ? ?| ?& <=> <-> ^= !< !> ! ** |/ ||/ -|- &< &> ^@ *= =*`)

func (l *lexer) operator() {
	rest := l.text[l.at:]
	end := 0
	for end < len(rest) && strings.IndexByte(operatorBytes, rest[end]) >= 0 {
		if r := rest[end:]; end > 0 && (r[0] == '#' || strings.HasPrefix(r, "--") || strings.HasPrefix(r, "/*")) {
			break
		}
		if r := rest[end:]; end > 0 && len(r) > 1 && r[0] == '@' && rest[end-1] != '@' &&
			(isVariable(r[1]) || r[1] == '@') {
			break
		}
		end++
	}
	run := rest[:end]
	// PostgreSQL ends an operator before a sign that follows it; a question mark is a parameter.
	for len(run) > 1 && !slices.Contains(operators, run) && strings.IndexByte("+-?", run[len(run)-1]) >= 0 {
		run = run[:len(run)-1]
	}
	if !slices.Contains(operators, run) {
		l.differ("the operator " + run[:min(len(run), 20)] + " is not one that databases share")
		return
	}
	if run[0] == '#' {
		l.tail |= hashTail
		if l.bracket {
			l.differ("a comment begins between brackets")
		}
	}
	l.add(symbol, run)
	l.at += len(run)
}
