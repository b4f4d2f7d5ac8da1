package redact

import "bytes"

const (
	// maxHead is the length of the longest line that is read as a table header, and maxRow that of the
	// longest row.
	maxHead = 2 << 10
	maxRow  = 16 << 10
	// rowCost is the cost of examining one byte of a row, in units.
	rowCost = 10
)

// headWords are words in names of columns with secrets.
func headWords() []string {
	return append(passwordWords(), "secret", "token", "credential", "api_key", "apikey", "api-key", "api key",
		"access_key", "private_key", "auth_key", "pass")
}

// columnsBelow finds the values in the column whose header contains the word text[at:at+size]. It
// reads CSV, tables with tabs or bars, and columns aligned with spaces.
func columnsBelow(text []byte, at, size int) (spans []span, cost int) {
	start := 1 + bytes.LastIndexByte(text[max(0, at-maxHead):at], '\n') + max(0, at-maxHead)
	stop := lineEnd(text, at, maxHead)
	if stop < 0 || stop >= len(text)-1 {
		return nil, maxHead / 32
	}
	head := text[start:stop]
	if bytes.ContainsAny(head, "={}<>[]@:\\+*&^%$!~") {
		return nil, len(head)/16 + 8
	}
	for _, split := range splitters {
		cells := split(head)
		if len(cells) < 2 {
			continue
		}
		column := columnAt(cells, at-start)
		if column < 0 {
			continue
		}
		name := bytes.TrimSpace(head[cells[column].start:cells[column].end])
		if !isHead(name) || !headOfNames(head, cells) {
			return nil, len(head)
		}
		return below(text, stop+1, cells, column, name, split)
	}
	return nil, len(head)
}

// below reads the rows after the header. It skips horizontal lines of the frame and stops at a row
// with a different number of cells.
func below(text []byte, from int, heads []cell, column int, name []byte, split splitter) (spans []span, cost int) {
	first := from
	for from < len(text) {
		stop := lineEnd(text, from, maxRow)
		if stop < 0 {
			break
		}
		row := text[from:stop]
		cells := split(row)
		if c, ok := cellUnder(heads, column, cells); ok {
			value := row[c.start:c.end]
			if s, ok := columnSecret(name, value); ok &&
				(bytes.IndexByte(value[s.start:], ' ') < 0 || isGenerated(value)) {
				spans = append(spans, span{start: from + c.start + s.start, end: from + c.start + s.end, kind: s.kind})
			}
		} else if !isRule(row) {
			break
		}
		from = stop + 1
	}
	return spans, rowCost * (from - first)
}

// isRule reports whether a row is a horizontal line of a table's frame.
func isRule(row []byte) bool {
	return len(bytes.Trim(row, " \t\r|+-=:─━│┌┬┐├┼┤└┴┘╭╮╰╯┃╞═╪╡")) == 0
}

func lineEnd(text []byte, from, most int) int {
	i := bytes.IndexByte(text[from:min(len(text), from+most)], '\n')
	switch {
	case i >= 0:
		return from + i
	case from+most >= len(text):
		return len(text)
	}
	return -1
}

// cell is one cell of a row, without the spaces and quotes around its text.
type cell struct {
	start, end int
	aligned    bool // its position in the line determines its column
}

// splitter splits a line into cells. It returns at most one cell if the line does not contain its
// separator.
type splitter func(line []byte) []cell

var splitters = []splitter{
	func(line []byte) []cell { return splitAt(line, '\t') },
	func(line []byte) []cell { return splitAt(line, '|') },
	splitFrame,
	func(line []byte) []cell { return splitAt(line, ',') },
	func(line []byte) []cell { return splitAt(line, ';') },
	splitAligned,
}

// splitAt splits a line at a separator outside of quotes (RFC 4180).
func splitAt(line []byte, separator byte) []cell {
	if bytes.IndexByte(line, separator) < 0 {
		return nil
	}
	var cells []cell
	start, quoted := 0, false
	for i := 0; i <= len(line); i++ {
		switch {
		case i < len(line) && line[i] == '"' && separator != '|':
			quoted = !quoted
		case i == len(line) || line[i] == separator && !quoted:
			cells = append(cells, trimmed(line, start, i))
			start = i + 1
		}
	}
	return cells
}

func trimmed(line []byte, start, end int) cell {
	for start < end && bytes.IndexByte([]byte(" \t\r\"'`"), line[start]) >= 0 {
		start++
	}
	for end > start && bytes.IndexByte([]byte(" \t\r\"'`"), line[end-1]) >= 0 {
		end--
	}
	return cell{start: start, end: end}
}

// splitFrame splits a line at the bars of a drawn frame.
func splitFrame(line []byte) []cell {
	if !bytes.Contains(line, []byte("│")) {
		return nil
	}
	var cells []cell
	start := 0
	for part := range bytes.SplitSeq(line, []byte("│")) {
		cells = append(cells, trimmed(line, start, start+len(part)))
		start += len(part) + len("│")
	}
	return cells
}

// splitAligned splits a line at two or more spaces.
func splitAligned(line []byte) []cell {
	var cells []cell
	for _, m := range alignedText.FindAllIndex(line, 64) {
		cells = append(cells, cell{m[0], m[1], true})
	}
	return cells
}

var alignedText = compile(`\S+(?: \S+)*`)

func columnAt(cells []cell, at int) int {
	for i, c := range cells {
		if c.start <= at && at < c.end {
			return i
		}
	}
	return -1
}

// cellUnder returns the cell of a row in a column of the header.
func cellUnder(heads []cell, column int, cells []cell) (cell, bool) {
	if !heads[column].aligned {
		if len(cells) != len(heads) {
			return cell{}, false
		}
		return cells[column], true
	}
	if len(cells) < 2 {
		return cell{}, false
	}
	for _, c := range cells {
		if c.start == heads[column].start || c.end == heads[column].end {
			return c, true
		}
	}
	return cell{}, true // a row whose cell is empty
}

// isHead reports whether a text is the name of a column with secrets.
func isHead(name []byte) bool {
	return len(name) <= 40 && !harmlessName.Match(name) && (passwordName.Match(name) || secretNames.Match(name))
}

// headOfNames reports whether all cells of a line are short names. Those of a header are; those of
// a line of code are not.
func headOfNames(line []byte, cells []cell) bool {
	named := 0
	for i, c := range cells {
		switch {
		case c.end == c.start && (i == 0 || i == len(cells)-1) && len(cells) > 3 && isBar(line): // outside of a table
		case c.end == c.start || i > 0 && line[c.start-1] == '\'' || !headName.Match(line[c.start:c.end]):
			return false
		default:
			named++
		}
	}
	return named > 1
}

// isBar reports whether a line begins with the bar of a table.
func isBar(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	return bytes.HasPrefix(line, []byte("|")) || bytes.HasPrefix(line, []byte("│"))
}

var headName = compile(`^(?:[A-Za-z][A-Za-z0-9_.\- /()#?]{0,40}|#)$`)
