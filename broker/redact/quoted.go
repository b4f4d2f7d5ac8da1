package redact

import "bytes"

// Quoted-printable text (RFC 2045, section 6.7) is looked for where it shows:
// its sign for =, or a line of the length at which mail breaks lines that ends in one.
const (
	minSoftLine = 70
	maxSoftLine = 78
)

// findQuoted undoes quoted-printable from the first paragraph that has some to the
// last one: what stands there may go over several.
func findQuoted(text []byte, d depth, find finder) []span {
	first, last := -1, 0
	for start := 0; start < len(text) && bytes.IndexByte(text[start:], '=') >= 0; {
		stop, isQuoted := endOfParagraph(text, start)
		if isQuoted && first < 0 {
			first = start
		}
		if isQuoted {
			last = stop
		}
		start = stop
	}
	if first < 0 {
		return nil
	}
	plain, places := unescape(text[first:last], quotedAt)
	found := findDeep(plain, d, find)
	for i, s := range found {
		from, to := places[s.start], places[s.end]
		if to-from != s.end-s.start {
			found[i].rewrite, found[i].joined = nil, true
		}
		found[i].start, found[i].end = first+from, first+to
	}
	return found
}

// endOfParagraph returns where the lines end that soft breaks join, and whether there
// is something to undo in them.
func endOfParagraph(text []byte, start int) (stop int, isQuoted bool) {
	for stop = start; ; {
		line := text[stop:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		stop += len(line)
		isQuoted = isQuoted || bytes.Contains(line, []byte("=3D")) || bytes.Contains(line, []byte("=3d"))
		body := bytes.TrimRight(line, "\r\n")
		if !bytes.HasSuffix(body, []byte("=")) || len(body) < minSoftLine || len(body) > maxSoftLine || stop >= len(text) {
			return stop, isQuoted
		}
		isQuoted = true
	}
}

func quotedAt(text []byte) (char []byte, size int) {
	switch {
	case text[0] != '=':
		return nil, 0
	case bytes.HasPrefix(text, []byte("=\r\n")):
		return nil, 3
	case bytes.HasPrefix(text, []byte("=\n")):
		return nil, 2
	}
	code, ok := hexNumber(text, 1, 2)
	if !ok {
		return nil, 0
	}
	return []byte{byte(code)}, 3
}
