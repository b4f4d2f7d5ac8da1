package redact

import (
	"bytes"
	"encoding/json"

	"github.com/airlock-mcp/airlock/internal/canon"
)

const (
	// maxDocuments is the maximum number of JSON texts that are nested as strings in one another.
	maxDocuments = 3
	// minDocument is the length of the shortest JSON text that can have a name and a secret.
	minDocument = 12
	// validCost is the cost of finding whether one byte belongs to JSON, in units.
	validCost = 1
	// documentCost is the cost of reading one byte of a JSON text, in units.
	documentCost = 2
)

// findInDocuments finds secrets in JSON that a text contains, by the members, columns and names beside them, as JSON
// finds them in a value that is JSON as a whole. It reads the whole text, lines that contain JSON, and lines from one
// that begins with a bracket to the one that begins with its counterpart.
func findInDocuments(text []byte, w *work) []span {
	if found, ok := inDocument(text, w, maxDocuments); ok {
		return found
	}
	var spans []span
	closed := [2]bool{true, true} // whether lines may follow that begin with } or ]
	for start := 0; start < len(text); {
		stop := lineAfter(text, start)
		from, end := document(text, start, stop, &closed)
		if from == end {
			start = stop
			continue
		}
		found, _ := inDocument(text[from:end], w, maxDocuments)
		spans, start = append(spans, moved(found, from)...), max(stop, end)
	}
	return spans
}

// document returns the part of the line text[start:stop] that may be JSON, or the lines from it on if it is a bracket
// alone. The part is empty if there is none. closed is false for brackets whose counterpart begins no line after this
// one.
func document(text []byte, start, stop int, closed *[2]bool) (from, end int) {
	line := bytes.TrimRight(text[start:stop], " \t\r\n,;")
	if len(line) == 0 {
		return start, start
	}
	if which := bytes.IndexByte([]byte("{["), line[0]); which >= 0 && (len(line) == 1 || string(line) == "[{") {
		closes := []byte{'\n', line[0] + 2} // the counterparts of { and [
		size := -1
		if closed[which] {
			size = bytes.Index(text[stop-1:], closes)
		}
		if closed[which] = size >= 0; !closed[which] {
			return start, start
		}
		return start, stop - 1 + size + len(closes)
	}
	if last := line[len(line)-1]; last != '}' && last != ']' {
		return start, start
	}
	for _, begin := range []string{`{"`, `[{`, `["`, `[[`} {
		if i := bytes.Index(line, []byte(begin)); i >= 0 && (from == end || start+i < from) {
			from, end = start+i, start+len(line)
		}
	}
	return from, end
}

// inDocument returns the secrets in a text that is JSON as a whole. ok reports whether it is.
func inDocument(text []byte, w *work, depth int) (spans []span, ok bool) {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) < minDocument || trimmed[0] != '{' && trimmed[0] != '[' ||
		trimmed[len(trimmed)-1] != trimmed[0]+2 || !w.spend(validCost*len(text)) || !json.Valid(text) ||
		canon.IsDeep(text) {
		return nil, false
	}
	if !secretHint.Match(text) || !w.spend(documentCost*len(text)) {
		return nil, true
	}
	marked := markSecrets(text)
	for at := 0; at < len(text); {
		end := tokenEnd(text, at)
		if end == at {
			at++
			continue
		}
		s, isMarked := marked[at]
		if text[at] != '"' {
			if isMarked {
				spans = append(spans, span{start: at, end: end, kind: s.kind})
			}
			at = end
			continue
		}
		inside := text[at+1 : end-1]
		mayNest := depth > 1 && len(inside) >= minDocument && bytes.IndexByte([]byte("{[ \\"), inside[0]) >= 0
		if isMarked || mayNest {
			plain, places := unescape(inside, escapeAt)
			var found []span
			if mayNest {
				found, _ = inDocument(plain, w, depth-1)
			}
			if isMarked && s.end <= len(plain) {
				found = append(found, s)
			}
			spans = append(spans, moved(backMapped(found, places), at+1)...)
		}
		at = end
	}
	return spans, true
}
