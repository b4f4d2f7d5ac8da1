package redact

import "bytes"

// maxPlainLines is the maximum number of lines without quoted-printable encoding between two lines
// that are decoded together.
const maxPlainLines = 8

// quotedPrintable decodes lines of quoted-printable text (RFC 2045, section 6.7) and the lines
// between them, and searches the result.
func (s *search) quotedPrintable(text []byte, d depth) []span {
	var spans []span
	first, last, plain := -1, 0, 0
	before := [2]int{} // the beginnings of the two lines before, which may have the name of a value
	for start := 0; start < len(text) && bytes.IndexByte(text[start:], '=') >= 0; {
		stop := lineAfter(text, start)
		switch {
		case isQuotedPrintable(text[start:stop]):
			if first < 0 {
				first = before[0]
			}
			last, plain = lineAfter(text, stop), 0 // a soft break continues in the next line
		case first >= 0 && plain == maxPlainLines:
			spans = append(spans, s.withoutQuotedPrintable(text, first, last, d)...)
			first = -1
		default:
			plain++
		}
		before = [2]int{before[1], start}
		start = stop
	}
	if first >= 0 {
		spans = append(spans, s.withoutQuotedPrintable(text, first, last, d)...)
	}
	return spans
}

func (s *search) withoutQuotedPrintable(text []byte, first, last int, d depth) []span {
	if !s.work.spend(last - first) {
		return nil
	}
	var spans []span
	for _, part := range windows(text[first:last]) {
		plain, places := unescape(text[first+part.start:first+part.end], quotedAt)
		spans = append(spans, moved(backMapped(s.deep(plain, d), places), first+part.start)...)
	}
	return spans
}

// isQuotedPrintable reports whether a line ends in a soft line break or contains an encoded
// printable character.
func isQuotedPrintable(line []byte) bool {
	if body := bytes.TrimRight(line, "\r\n"); len(body) < len(line) && len(body) > 1 && body[len(body)-1] == '=' &&
		body[len(body)-2] != '=' {
		return !digestAtEnd.Match(body[max(0, len(body)-maxDigest):])
	}
	for at := 0; ; at++ {
		i := bytes.IndexByte(line[at:], '=')
		if i < 0 {
			return false
		}
		at += i
		if c, ok := hexNumber(line, at+1, 2); ok && c >= ' ' && c <= '~' {
			return true
		}
	}
}

// digestAtEnd matches the base64 of 32 bytes, whose padding is not a soft break: a digest in go.sum.
var digestAtEnd = compile(`(?:^|[^A-Za-z0-9+/])[A-Za-z0-9+/]{43}=(?:[\s"',;)]|$)`)

// maxDigest is the length of such a digest, with the character before it.
const maxDigest = 45

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
	if !ok || code < '\t' || code == 0x7f {
		return nil, 0
	}
	return []byte{byte(code)}, 3
}
