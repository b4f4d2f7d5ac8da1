package redact

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

// maxPlaces is the maximum number of values that are numbered. Markers of further values have no
// number. The limit bounds the memory of a run with a long list of values.
const maxPlaces = 10_000

// places numbers values. Equal values of one kind have the same number, so that a reader of a
// cleaned text can see which values are equal. It stores digests, not values.
type places struct {
	mu      sync.Mutex // guards both
	numbers map[[sha256.Size]byte]int
	last    map[string]int // by kind
}

// Numbered returns a Redactor with the same canaries whose markers have numbers, such as
// [redacted:email-2]. A number identifies one value as long as the Redactor is used, for example
// for one run.
func (r *Redactor) Numbered() *Redactor {
	return &Redactor{held: r.held, personal: r.personal,
		places: &places{numbers: map[[sha256.Size]byte]int{}, last: map[string]int{}}}
}

// marker returns the replacement of a value.
func (p *places) marker(kind string, value []byte) string {
	if p == nil {
		return "[redacted:" + kind + "]"
	}
	key := sha256.Sum256(append([]byte(kind+"\x00"), value...))
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.numbers[key]
	if !ok && len(p.numbers) >= maxPlaces {
		return "[redacted:" + kind + "]"
	}
	if !ok {
		p.last[kind]++
		n = p.last[kind]
		p.numbers[key] = n
	}
	return fmt.Sprintf("[redacted:%s-%d]", kind, n)
}
