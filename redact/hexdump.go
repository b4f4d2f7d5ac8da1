package redact

import (
	"bytes"
	"strconv"
)

// minBytes is the minimum number of bytes of a list of numbers or a dump that is decoded.
const minBytes = 6

// separators are the separators between the hexadecimal pairs of a list. Longer ones come first.
var separators = [][]byte{
	[]byte(", 0x"), []byte(",0x"), []byte(" 0x"), []byte(":0x"), []byte(", "), []byte("\r\n"), []byte("  "),
	[]byte(":"), []byte(" "), []byte("-"), []byte(","), []byte("\n"), []byte("."), []byte(";"), []byte("|"),
	[]byte("\t"), []byte("_"),
}

// separates are the first characters of the separators.
var separates = func() (set [256]bool) {
	for _, separator := range separators {
		set[separator[0]] = true
	}
	return set
}()

// decimalSeparators are the separators between decimal numbers.
var decimalSeparators = [][]byte{[]byte(",\n"), []byte(", "), []byte(","), []byte(" "), []byte("\n"), []byte(";")}

// numbers decodes lists of bytes that are written as numbers: 67:68:70, 0x67, 0x68, 103, 104.
func (s *search) numbers(text []byte, d depth) []span {
	var spans []span
	for at := 0; at+2 < len(text) && !s.work.exhausted(); at++ {
		begin := at
		for at < len(text) && isAlnum(text[at]) {
			at++
		}
		n := at - begin
		if n == 0 || n > 3 && n != 4 || at == len(text) {
			continue
		}
		if n == 4 && text[begin] == '0' && text[begin+1]|0x20 == 'x' {
			begin, n = begin+2, 2
		}
		var lists [2][]written
		if n == 2 && isPair(text, begin) {
			lists[0] = pairs(text, begin)
		}
		if n <= 3 && isDigit(text[begin]) {
			lists[1] = decimals(text, begin)
		}
		if n == 4 && text[at] == ' ' {
			lists[0] = words(text, begin)
		}
		for _, places := range lists {
			if len(places) >= minBytes && s.work.spend(8*len(places)) {
				spans = append(spans, s.spelled(places, d)...)
				at = max(at, places[len(places)-1].end-1)
			}
		}
	}
	return spans
}

// written is a byte with the position of its number in the text.
type written struct {
	start, end int
	value      byte
}

// pairs reads a list of hexadecimal pairs with one separator.
func pairs(text []byte, at int) []written {
	if at+2 >= len(text) || !separates[text[at+2]] {
		return nil
	}
	for _, separator := range separators {
		if second := at + 2 + len(separator); !bytes.HasPrefix(text[at+2:], separator) || !isPair(text, second) ||
			second+2 < len(text) && isAlnum(text[second+2]) {
			continue
		}
		var list []written
		for next := at; isPair(text, next); next += 2 + len(separator) {
			value, _ := hexNumber(text, next, 2)
			list = append(list, written{next, next + 2, byte(value)})
			if !bytes.HasPrefix(text[next+2:], separator) {
				break
			}
		}
		if len(list) >= minBytes {
			return list
		}
	}
	return nil
}

// words reads a list of two hexadecimal pairs each, with a space between them. The last one may be a single pair.
func words(text []byte, at int) []written {
	var list []written
	for isPair(text, at) {
		size := 2
		if isPair(text, at+2) {
			size = 4
		}
		if at+size < len(text) && isAlnum(text[at+size]) {
			break
		}
		for next := at; next < at+size; next += 2 {
			value, _ := hexNumber(text, next, 2)
			list = append(list, written{next, next + 2, byte(value)})
		}
		if at += size; size < 4 || at == len(text) || text[at] != ' ' {
			break
		}
		at++
	}
	return list
}

func isPair(text []byte, at int) bool {
	return at+2 <= len(text) && isHex(text[at]) && isHex(text[at+1])
}

// decimals reads a list of numbers up to 255 with one separator.
func decimals(text []byte, at int) []written {
	var list []written
	var separator []byte
	for at < len(text) && isDigit(text[at]) {
		end, value := at, 0
		for end < len(text) && end-at < 4 && isDigit(text[end]) {
			value = value*10 + int(text[end]-'0')
			end++
		}
		if value > 255 || len(list) == 0 && prefixOf(text[end:], decimalSeparators) == nil {
			break
		}
		list = append(list, written{at, end, byte(value)})
		if separator == nil {
			separator = prefixOf(text[end:], decimalSeparators)
		}
		if separator == nil || !bytes.HasPrefix(text[end:], separator) {
			break
		}
		at = end + len(separator)
		for n := 0; n < maxIndent && at < len(text) && text[at] == ' '; n++ {
			at++
		}
	}
	return list
}

func prefixOf(text []byte, list [][]byte) []byte {
	for _, prefix := range list {
		if bytes.HasPrefix(text, prefix) {
			return prefix
		}
	}
	return nil
}

// spelled searches the bytes of a list of numbers.
func (s *search) spelled(list []written, d depth) []span {
	plain := make([]byte, len(list))
	for i, w := range list {
		plain[i] = w.value
	}
	e := encoded{plain: plain, end: list[len(list)-1].end,
		place: func(i int) (int, int) { return list[i].start, list[i].end }, encode: nil}
	spans, _ := s.inside(e, d)
	return spans
}

// dumps decodes the output of xxd, hexdump and od: lines with an offset, columns of numbers or
// characters, and the characters again at the end.
func (s *search) dumps(text []byte, d depth) []span {
	var spans []span
	for start := 0; start < len(text); {
		lines, stop := dumpAt(text, start)
		if len(lines) == 0 {
			start = lineAfter(text, start)
			continue
		}
		start = stop
		for _, form := range []func(dumpLine) []written{dumpLine.bytes, dumpLine.swapped} {
			var list []written
			for _, line := range lines {
				list = append(list, form(line)...)
			}
			if len(list) < minBytes {
				continue
			}
			for _, found := range s.spelled(list, d) {
				for _, line := range lines {
					if line.start < found.end && found.end <= line.end { // with the characters at the end of the line
						found.end = line.end
					}
				}
				found.joined, found.rewrite = true, nil
				spans = append(spans, found)
			}
		}
	}
	return spans
}

func lineAfter(text []byte, start int) int {
	if i := bytes.IndexByte(text[start:], '\n'); i >= 0 {
		return start + i + 1
	}
	return len(text)
}

// dumpAt returns the lines of the dump that begins at start, and its end.
func dumpAt(text []byte, start int) (lines []dumpLine, stop int) {
	for stop = start; stop < len(text); {
		next := lineAfter(text, stop)
		line, ok := parseDumpLine(text, stop, next)
		if !ok || len(lines) > 0 && line.width != lines[0].width {
			break
		}
		lines, stop = append(lines, line), next
	}
	return lines, stop
}

// dumpLine is one line of a dump. width is the width of its columns: 2, 4, 8 or 16 for hexadecimal
// digits, 3 or 6 for octal digits, and 1 for characters.
type dumpLine struct {
	start, end int // the line without its line break
	width      int
	columns    []column
}

type column struct {
	start int
	text  []byte
}

const maxDumpLine = 400

// parseDumpLine reads text[start:stop] as a line of a dump.
func parseDumpLine(text []byte, start, stop int) (dumpLine, bool) {
	line := dumpLine{start: start, end: stop}
	for line.end > start && (text[line.end-1] == '\n' || text[line.end-1] == '\r') {
		line.end--
	}
	if line.end-start > maxDumpLine || line.end-start < 8 {
		return line, false
	}
	at := start
	for at < line.end && text[at] == ' ' {
		at++
	}
	if !mayBeDump(text[at:line.end], at-start) {
		return line, false
	}
	fields := splitColumns(text, at, line.end)
	if len(fields) > 1 && isOffset(fields[0].text) && (at == start || len(fields[0].text) != len(fields[1].text)) {
		fields = fields[1:]
	}
	line.columns, line.width = numberColumns(fields)
	if len(line.columns) == 0 {
		line.columns, line.width = characterColumns(fields), 1
	}
	return line, len(line.columns) > 1
}

// mayBeDump is a quick check of a line without its indentation: it begins with the number of a
// dump, or is indented and begins with a single character.
func mayBeDump(line []byte, indent int) bool {
	n := 0
	for n < len(line) && isHex(line[n]) {
		n++
	}
	if n < len(line) && line[n] == ':' {
		return n >= 4 && n <= 16
	}
	if n >= 2 && n <= 16 && n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		return true
	}
	return indent >= 3 && len(line) > 1 && (line[0] == '\\' || line[1] == ' ')
}

// splitColumns splits a line at spaces and tabs.
func splitColumns(text []byte, at, end int) []column {
	var fields []column
	for at < end {
		stop := at
		for stop < end && text[stop] != ' ' && text[stop] != '\t' {
			stop++
		}
		fields = append(fields, column{at, text[at:stop]})
		for at = stop; at < end && (text[at] == ' ' || text[at] == '\t'); at++ {
		}
	}
	return fields
}

func isOffset(field []byte) bool {
	field = bytes.TrimSuffix(field, []byte(":"))
	if len(field) < 4 || len(field) > 16 {
		return false
	}
	return len(bytes.Trim(field, "0123456789abcdefABCDEF")) == 0
}

// numberColumns returns the columns with numbers. All have the same width, except that the last may
// be shorter.
func numberColumns(fields []column) (columns []column, width int) {
	if len(fields) == 0 {
		return nil, 0
	}
	width = len(fields[0].text)
	digits := "0123456789abcdefABCDEF"
	switch width {
	case 2, 4, 8, 16:
	case 3, 6:
		digits = "01234567"
	default:
		return nil, 0
	}
	for i, field := range fields {
		if len(bytes.Trim(field.text, digits)) > 0 || len(field.text) > width || len(field.text) < width &&
			width%4 != 0 {
			break
		}
		if i > 0 {
			gap := field.start - fields[i-1].start - len(fields[i-1].text)
			if gap > 1 && width == 4 || gap > 1 && width == 2 && i != 8 { // the characters again
				break
			}
		}
		columns = append(columns, field)
		if len(field.text) < width {
			break
		}
	}
	return columns, width
}

// characterColumns returns the columns of od -c: a character, an escape or three octal digits in
// each column of four.
func characterColumns(fields []column) []column {
	for i, field := range fields {
		if len(field.text) > 3 || i > 0 && (field.start+len(field.text)-fields[0].start-len(fields[0].text))%4 != 0 {
			return nil
		}
	}
	return fields
}

// bytes returns the bytes of a line in the order in which xxd prints them.
func (l dumpLine) bytes() []written { return l.decoded(false) }

// swapped returns the bytes of a line whose numbers are words of a little-endian machine.
func (l dumpLine) swapped() []written {
	if l.width < 4 {
		return nil
	}
	return l.decoded(true)
}

func (l dumpLine) decoded(swap bool) []written {
	var list []written
	for i, c := range l.columns {
		var values []byte
		switch l.width {
		case 1:
			values = []byte{characterOf(c.text)}
			if i > 0 && c.start > l.columns[i-1].start+len(l.columns[i-1].text)+4 { // a blank
				list = append(list, written{c.start, c.start, ' '})
			}
		case 3:
			n, _ := strconv.ParseUint(string(c.text), 8, 16)
			values = []byte{byte(n)}
		case 6:
			n, _ := strconv.ParseUint(string(c.text), 8, 32)
			values = []byte{byte(n >> 8), byte(n)}
		default:
			for i := 0; i+2 <= len(c.text); i += 2 {
				n, _ := hexNumber(c.text, i, 2)
				values = append(values, byte(n))
			}
		}
		for i := range values {
			value := values[i]
			if swap {
				value = values[len(values)-1-i]
			}
			list = append(list, written{c.start, c.start + len(c.text), value})
		}
	}
	if last := l.columns[len(l.columns)-1]; l.width == 1 && l.end-last.start-len(last.text) >= 4 { // a blank
		list = append(list, written{l.end, l.end, ' '})
	}
	return list
}

// characterOf returns the byte that od -c prints as a character or an escape.
func characterOf(text []byte) byte {
	if len(text) == 1 {
		return text[0]
	}
	if char, size := escapeAt(text); size == len(text) && len(char) == 1 {
		return char[0]
	}
	n, _ := strconv.ParseUint(string(text), 8, 8)
	return byte(n)
}
