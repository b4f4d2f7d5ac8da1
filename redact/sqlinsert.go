package redact

import "bytes"

// insertHead matches INSERT INTO table (columns) VALUES, with the columns in group 1.
var insertHead = compile(
	"(?is)\\Ainsert\\s{1,8}(?:or\\s{1,4}[a-z]{1,8}\\s{1,4})?into\\s{1,8}[\\w.\"`\\[\\]]{1,120}\\s{0,8}" +
		"\\(([^()]{1,1000})\\)\\s{0,40}values\\s{0,40}")

// insertedValues finds the values that an SQL INSERT puts into columns with the name of a secret,
// in each row and in any order of the columns.
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

// insertCost is the cost of finding that a text is not an INSERT.
const insertCost = 200

// sqlReader reads the rows of an INSERT.
type sqlReader struct {
	text []byte
	at   int
}

// skip skips white space and then c, and reports whether c was there.
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

// value reads one value: a quoted string, in which quotes are doubled or escaped, or the text up to
// the next comma or bracket.
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

// endOfSQL returns the position of the closing quote.
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
