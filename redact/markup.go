package redact

import (
	"bytes"
	"html"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// elementPassword finds the text of an XML element with the name of a password.
func elementPassword(text []byte, at, size int) (place, bool) {
	m := elementText.FindSubmatchIndex(text[at:min(len(text), at+size+maxJudged)])
	if m == nil {
		return place{}, false
	}
	group := 2
	if m[group] < 0 {
		group = 4
	}
	inside := text[at+m[group] : at+m[group+1]]
	value := bytes.TrimSpace(inside)
	start := at + m[group] + bytes.Index(inside, value)
	return place{start, start + len(value), m[1] + 24*len(value)}, isElementSecret(text[at:at+size], value)
}

// isElementSecret reports whether the text of an element is a secret. The word is the end of its name.
func isElementSecret(word, value []byte) bool {
	if bytes.EqualFold(word, []byte("key>")) {
		return isDrawn(value) || len(value) >= 16 && hasDigit(value) && secretText(value)
	}
	return passwordText(value) && !isProse(value) || isGenerated(value)
}

var elementText = compile(
	`(?i)\A(?:passw(?:or)?ds?|passphrase|pwd|pass|secret|token|key)(?: ` +
		`[^<>\n]{1,60})?>(?:\s{0,40}<(?:value|string|text|val)>)?` +
		`(?:\s{0,40}<!\[CDATA\[([^\n]{4,200}?)\]\]>|\s{0,40}([^\n<]{4,200}?)\s{0,40}</)`)

// markup reads the text of an element that is named by its tag, by an attribute, or by the element before it:
// <password type="x">…, <property name="password">…, <key>password</key><string>…, <dt>password</dt><dd>….
func (p *reader) markup(a *assignment, nameStart int, forms [][2]*lazyregexp.Regexp) bool {
	before := p.text[max(0, nameStart-24):nameStart]
	if !bytes.ContainsAny(before, "<>=") {
		return false
	}
	rest := p.text[p.at:min(len(p.text), p.at+maxJudged)]
	for _, form := range forms {
		if !form[0].Match(before) {
			continue
		}
		m := form[1].FindIndex(rest)
		if m == nil {
			return false
		}
		size := bytes.IndexAny(rest[m[1]:], "<\r\n")
		if size < 0 {
			return false
		}
		a.start, a.end, a.quoted = p.at+m[1], p.at+m[1]+size, true
		p.at = a.end
		return true
	}
	return false
}

// elements match the text before a name and the text between it and its value.
var elements = [][2]*lazyregexp.Regexp{
	{compile(`<(?:[A-Za-z][\w.\-]{0,20}:)?$`),
		compile(`\A(?:\s[^<>\n]{1,80})?>(?:\s{0,40}<(?i:value|string|text|val)>)?`)},
	{compile(`(?:name|key|id|for)=["']$`), compile(`\A[^<>\n]{0,80}>\s{0,40}(?:<[A-Za-z]{1,12}>\s{0,20})?`)},
	{compile(`>\s{0,8}$`), compile(`\A[ :]{0,3}(?:</[\w:]{1,20}>\s{0,40}){1,3}` +
		`(?:<[\w:]{1,20}(?: [^<>\n]{0,60})?>\s{0,20}){1,3}`)},
}

// entities replaces the character references of HTML and XML, and searches the result.
func (s *search) entities(text []byte, d depth) []span {
	return s.mapped(text, d, entity.Match, entityAt)
}

// entity matches the references for characters that are part of a value or delimit it.
var entity = compile(`&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|quot|apos|amp|lt|gt|nbsp|NewLine|Tab);`)

// longestEntity is the length of the longest reference.
const longestEntity = 10

func entityAt(text []byte) (char []byte, size int) {
	if text[0] != '&' {
		return nil, 0
	}
	m := entity.FindIndex(text[:min(len(text), longestEntity)])
	if m == nil || m[0] != 0 {
		return nil, 0
	}
	return []byte(html.UnescapeString(string(text[:m[1]]))), m[1]
}

// coloured removes a terminal's control sequences and the zeros of UTF-16, and searches the result.
// They hide secrets if they are within a name or a value, or between them.
func (s *search) coloured(text []byte, d depth) []span {
	found := s.mapped(text, d, isColoured, colourAt)
	for i, s := range found {
		for {
			m := colourEnd.FindIndex(text[s.start:s.end])
			if m == nil || m[0] == 0 {
				break
			}
			s.end = s.start + m[0]
		}
		found[i] = s
	}
	return found
}

var (
	colourBegin = compile(`^` + colour)
	colourEnd   = compile(colour + `$`)
)

func isColoured(line []byte) bool {
	if bytes.IndexByte(line, 0) >= 0 {
		return true
	}
	if bytes.IndexByte(line, '[') < 0 {
		return false
	}
	for at := 1; at < len(line); at++ {
		i := bytes.IndexByte(line[at:], '[')
		if i < 0 {
			return false
		}
		if at += i; bytes.IndexByte([]byte("\x1bbB3e["), line[at-1]) >= 0 &&
			colourSequence.Match(line[max(0, at-longestLetters):min(len(line), at+longestEscape)]) {
			return true
		}
	}
	return false
}

var colourSequence = compile(colour)

func colourAt(text []byte) (char []byte, size int) {
	switch text[0] {
	case 0:
		return nil, 1
	case 0x1b, '\\', '^':
		if m := colourBegin.FindIndex(text[:min(len(text), longestEscape)]); m != nil {
			return nil, m[1]
		}
	}
	return nil, 0
}
