package redact

import (
	"bytes"
	"html"
)

// findEntities undoes the character references of HTML and XML, and finds in what
// comes out.
func findEntities(text []byte, d depth, find finder) []span {
	return findMapped(text, d, find, entity.Match, entityAt)
}

// entity is a reference that stands between characters, or in their place.
var entity = compile(`&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|quot|apos|amp|lt|gt|nbsp|NewLine|Tab);`)

// longestEntity is the most bytes of a reference.
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

// findColoured leaves out a terminal's control sequences and the zeros of UTF-16,
// and finds in what remains: between a name and its value, or within either, they
// hide both.
func findColoured(text []byte, d depth, find finder) []span {
	found := findMapped(text, d, find, isColoured, colourAt)
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
	for at := 1; at < len(line); at++ {
		i := bytes.IndexByte(line[at:], '[')
		if i < 0 {
			return false
		}
		if at += i; bytes.IndexByte([]byte("\x1bbB3e["), line[at-1]) >= 0 && colourSequence.Match(line[max(0, at-longestLetters):min(len(line), at+longestEscape)]) {
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
