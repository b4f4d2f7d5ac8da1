package redact

import "bytes"

// insertHead is INSERT INTO table (columns) VALUES, with the columns in group 1.
var insertHead = compile("(?is)\\Ainsert\\s{1,8}(?:or\\s{1,4}[a-z]{1,8}\\s{1,4})?into\\s{1,8}[\\w.\"`\\[\\]]{1,120}\\s{0,8}\\(([^()]{1,1000})\\)\\s{0,40}values\\s{0,40}")

// insertedValues finds what an INSERT of SQL puts into columns whose names promise
// a secret, in each of its rows and in whatever order the columns stand.
func insertedValues(text []byte, at, _ int) (spans []span, cost int) {
	m := insertHead.FindSubmatchIndex(text[at:min(len(text), at+maxHead)])
	if m == nil {
		return nil, insertCost
	}
	names := bytes.Split(text[at+m[2]:at+m[3]], []byte(","))
	from := at + m[1]
	p := &sqlReader{text: text, at: from}
	for p.skip('(') {
		for column := 0; ; column++ {
			value, quoted := p.value()
			if quoted && column < len(names) {
				name := bytes.Trim(names[column], " \t\r\n\"`[]")
				if s, ok := namedSecret(name, text[value.start:value.end], false); ok {
					spans = append(spans, span{start: value.start + s.start, end: value.start + s.end, kind: s.kind})
				}
			}
			if !p.skip(',') {
				break
			}
		}
		if !p.skip(')') || !p.skip(',') {
			break
		}
	}
	return spans, max(insertCost, rowCost*(p.at-from))
}

// insertCost is what it costs to see that a text is no INSERT.
const insertCost = 200

// sqlReader goes forward over the rows of an INSERT.
type sqlReader struct {
	text []byte
	at   int
}

// skip skips blanks and one character, if it is there.
func (p *sqlReader) skip(c byte) bool {
	for p.at < len(p.text) && bytes.IndexByte([]byte(" \t\r\n"), p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// value reads one value: a text in quotes, which are doubled or escaped inside, or
// what goes to the next comma or bracket.
func (p *sqlReader) value() (s span, quoted bool) {
	for _, quote := range []byte(`'"`) {
		if p.skip(quote) {
			s = span{start: p.at, end: p.at + endOfSQL(p.text[p.at:min(len(p.text), p.at+maxValue)], quote)}
			p.at = min(len(p.text), s.end+1)
			return s, true
		}
	}
	s.start = p.at
	for p.at < len(p.text) && p.at-s.start < maxRow && bytes.IndexByte([]byte(",)"), p.text[p.at]) < 0 {
		p.at++
	}
	s.end = p.at
	return s, false
}

// endOfSQL returns where the quote that closes a text stands.
func endOfSQL(text []byte, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == quote && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i
		}
	}
	return len(text)
}
