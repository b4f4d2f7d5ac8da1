package redact

import "bytes"

// The limits of the values that are searched for again.
const (
	maxRepeated       = 64  // values of one text
	minRepeatedValue  = 12  // bytes
	maxRepeatedValue  = 512 // bytes
	repeatedCostShift = 5   // searching for one value costs one unit for each 32 bytes
)

// repeated removes values that were found in one place from the rest of the text, if nothing identifies
// them there: token = 'V' | 'V', or a message that quotes a value of the configuration.
type repeated struct {
	values [][]byte
	kinds  []string
}

// learn remembers the secrets of spans that look random. Words are not remembered, because they occur in
// other meanings.
func (r *repeated) learn(text []byte, spans []span) {
	for _, s := range spans {
		if s.rewrite != nil || s.joined || IsPersonal(s.kind) || s.kind == kindHeld || s.kind == kindUnscanned {
			continue
		}
		value := text[s.start:s.end]
		if len(r.values) >= maxRepeated || len(value) < minRepeatedValue || len(value) > maxRepeatedValue ||
			entropy(value) < 3 || changes(value) < 3 || containsAny(r.values, value) {
			continue
		}
		r.values, r.kinds = append(r.values, bytes.Clone(value)), append(r.kinds, s.kind)
	}
}

func containsAny(list [][]byte, value []byte) bool {
	for _, known := range list {
		if bytes.Equal(known, value) {
			return true
		}
	}
	return false
}

// find returns the spans of all remembered values in a text.
func (r *repeated) find(text []byte, w *work) []span {
	var spans []span
	for i, value := range r.values {
		if !w.spend(len(text) >> repeatedCostShift) {
			return append(spans, span{end: len(text), kind: kindUnscanned})
		}
		for at := 0; ; {
			next := bytes.Index(text[at:], value)
			if next < 0 {
				break
			}
			at += next
			spans = append(spans, span{start: at, end: at + len(value), kind: r.kinds[i]})
			at += len(value)
		}
	}
	return spans
}
