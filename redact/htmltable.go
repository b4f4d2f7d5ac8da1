package redact

import (
	"bytes"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// maxMarkupRow is the maximum number of bytes of a row of an HTML table that are read.
const maxMarkupRow = 8 << 10

var (
	rowBegin  = compile(`(?i)<tr(?:\s[^<>]{0,100})?>`)
	cellBegin = compile(`(?i)<t[hd](?:\s[^<>]{0,100})?>`)
)

// markupColumn finds the values below the cell of an HTML table's header that contains the word text[at:at+size].
func markupColumn(text []byte, at, size int) (spans []span, cost int) {
	before := text[max(0, at-maxHead):at]
	opens := bytes.LastIndexByte(before, '<')
	if opens < 0 || !headCell.Match(before[opens:]) {
		return nil, headCost
	}
	cell := lastIndex(rowBegin, before)
	if cell < 0 {
		return nil, len(before)
	}
	column := len(cellBegin.FindAllIndex(before[cell:], -1)) - 1
	name, _, ok := bytes.Cut(text[at-len(before)+opens:min(len(text), at+size+maxName)], []byte("</"))
	name = bytes.TrimSpace(name[1+bytes.IndexByte(name, '>'):])
	if !ok || column < 0 || !isHead(name) {
		return nil, len(before)
	}
	first := at
	for from := at; ; {
		row := rowBegin.FindIndex(text[from:min(len(text), from+maxMarkupRow)])
		if row == nil || bytes.Contains(text[from:from+row[0]], []byte("</table")) {
			return spans, len(before) + rowCost*(from-first)
		}
		from += row[1]
		line := text[from:min(len(text), from+maxMarkupRow)]
		if next := rowBegin.FindIndex(line); next != nil {
			line = line[:next[0]]
		}
		cells := cellBegin.FindAllIndex(line, column+1)
		if len(cells) <= column {
			continue
		}
		value, _, _ := bytes.Cut(line[cells[column][1]:], []byte("</"))
		inside := bytes.TrimSpace(value)
		start := from + cells[column][1] + bytes.Index(value, inside)
		if s, ok := columnSecret(name, inside); ok && (bytes.IndexByte(inside, ' ') < 0 || isGenerated(inside)) {
			spans = append(spans, span{start: start + s.start, end: start + s.end, kind: s.kind})
		}
	}
}

// headCost is the cost of finding that a word is not in a header.
const headCost = 4

// headCell matches the text from a header's tag to a word in it.
var headCell = compile(`(?i)^<t[hd](?:\s[^<>]{0,100})?>\s{0,20}[\w .\-]{0,40}$`)

// lastIndex returns the position of the last match of an expression, or -1.
func lastIndex(expression *lazyregexp.Regexp, text []byte) int {
	all := expression.FindAllIndex(text, -1)
	if len(all) == 0 {
		return -1
	}
	return all[len(all)-1][0]
}
