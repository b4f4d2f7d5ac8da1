package sqltext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// dialect is what databases read differently.
type dialect struct {
	backslash bool // escapes in strings
	hash      bool // begins a comment
	nested    bool // comments may hold comments
	dollar    bool // quotes strings
}

var dialects = func() []dialect {
	var all []dialect
	for n := range 16 {
		all = append(all, dialect{n&1 != 0, n&2 != 0, n&4 != 0, n&8 != 0})
	}
	return all
}()

// lexer splits a text into statements as one dialect reads it.
type lexer struct {
	dialect
	rest     string
	ok       bool
	executed int // comments of MySQL that are open and count as SQL
}

// split returns the statements that have a word, and whether all that was
// opened was closed.
func split(sql string, d dialect) ([]statement, bool) {
	l := lexer{dialect: d, rest: sql, ok: true}
	var all []statement
	var current statement
	for l.rest != "" && l.ok {
		t, is := l.next()
		switch {
		case !is:
		case t.text == ";" && !t.quoted:
			all, current = append(all, current), nil
		default:
			current = append(current, t)
		}
	}
	all = append(all, current)
	kept := all[:0]
	for _, s := range all {
		if len(s) > 0 {
			kept = append(kept, s)
		}
	}
	return kept, l.ok
}

// next returns the next token; false for space and comments.
func (l *lexer) next() (token, bool) {
	r, size := utf8.DecodeRuneInString(l.rest)
	switch {
	case strings.HasPrefix(l.rest, "--"), r == '#' && l.hash:
		_, l.rest, _ = strings.Cut(l.rest, "\n")
		return token{}, false
	case strings.HasPrefix(l.rest, "/*!"), strings.HasPrefix(l.rest, "/*+"):
		l.rest = strings.TrimLeft(l.rest[3:], "0123456789") // MySQL executes what is in there
		l.executed++
		return token{}, false
	case l.executed > 0 && strings.HasPrefix(l.rest, "*/"):
		l.rest = l.rest[2:]
		l.executed--
		return token{}, false
	case strings.HasPrefix(l.rest, "/*"):
		l.comment()
		return token{}, false
	case r == '\'' || r == '"' || r == '`':
		return l.quoted(byte(r))
	case r == '$' && l.dollar:
		if t, is := l.dollarQuoted(); is {
			return t, true
		}
	case unicode.IsSpace(r) || r == utf8.RuneError:
		l.rest = l.rest[size:]
		return token{}, false
	}
	if !isWord(r) {
		l.rest = l.rest[size:]
		return token{text: string(r)}, true
	}
	end := strings.IndexFunc(l.rest, func(r rune) bool { return !isWord(r) })
	if end < 0 {
		end = len(l.rest)
	}
	word := l.rest[:end]
	l.rest = l.rest[end:]
	return token{text: strings.ToLower(word)}, true
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func (l *lexer) comment() {
	depth := 0
	for i := 0; i+1 < len(l.rest); i++ {
		switch l.rest[i : i+2] {
		case "/*":
			if depth == 0 || l.nested {
				depth++
			}
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				l.rest = l.rest[i+1:]
				return
			}
		}
	}
	l.ok = false
}

// quoted reads a string or a quoted name. A doubled quote stays inside.
func (l *lexer) quoted(quote byte) (token, bool) {
	for i := 1; i < len(l.rest); i++ {
		switch {
		case l.rest[i] == '\\' && l.backslash && quote != '`':
			i++
		case l.rest[i] == quote && i+1 < len(l.rest) && l.rest[i+1] == quote:
			i++
		case l.rest[i] == quote:
			text := strings.ToLower(l.rest[1:i])
			l.rest = l.rest[i+1:]
			return token{text: text, quoted: true}, true
		}
	}
	l.ok = false
	return token{}, false
}

// dollarQuoted reads a string of PostgreSQL such as $tag$text$tag$.
func (l *lexer) dollarQuoted() (token, bool) {
	end := strings.IndexByte(l.rest[1:], '$')
	if end < 0 || strings.ContainsFunc(l.rest[1:1+end], func(r rune) bool { return !isWord(r) }) {
		return token{}, false
	}
	tag := l.rest[:end+2]
	text, rest, closed := strings.Cut(l.rest[len(tag):], tag)
	l.ok, l.rest = closed, rest
	return token{text: strings.ToLower(text), quoted: true}, true
}
