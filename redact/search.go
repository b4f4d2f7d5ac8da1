package redact

import "slices"

const (
	// maxEncodings and maxEscapes are the maximum numbers of nested encodings and escapes that are
	// decoded.
	maxEncodings = 2
	maxEscapes   = 3
)

// depth is the number of layers that may still be decoded.
type depth struct{ encodings, escapes int }

var fullDepth = depth{maxEncodings, maxEscapes}

// finder finds spans in a text without decoding it.
type finder func(text []byte, w *work) []span

// search is one search of a text and of everything encoded or escaped in it.
type search struct {
	find finder
	work *work
}

// deep returns the spans in a text, including those in its decoded parts. If the budget is
// exhausted, the rest of the text is one span.
func (s *search) deep(text []byte, d depth) []span {
	if len(text) == 0 {
		return nil
	}
	key := s.work.key(text, d)
	if spans, ok := s.work.known[key]; ok {
		s.work.spend(len(text) / 4)
		return slices.Clone(spans)
	}
	spans := s.layers(text, d)
	if s.work.exhausted() {
		return append(spans, span{end: len(text), kind: kindUnscanned, joined: true})
	}
	s.work.known[key] = slices.Clone(spans)
	return spans
}

func (s *search) layers(text []byte, d depth) []span {
	if !s.work.spend(len(text)) {
		return nil
	}
	spans := s.find(text, s.work)
	for i := range spans {
		spans[i] = whole(text, spans[i])
	}
	type decoder = func([]byte, depth) []span
	var encodings, escapes []decoder
	if d.encodings > 0 {
		encodings = []decoder{s.encoded, s.numbers, s.dumps, s.percent, s.entities, s.quotedPrintable}
	}
	if d.escapes > 0 {
		escapes = []decoder{s.escaped, s.coloured}
	}
	for i, find := range append(encodings, escapes...) {
		inner := depth{d.encodings - 1, d.escapes}
		if i >= len(encodings) {
			inner = depth{d.encodings, d.escapes - 1}
		}
		if s.work.exhausted() { // deep removes all of the text
			break
		}
		spans = append(spans, find(text, inner)...)
	}
	return spans
}
