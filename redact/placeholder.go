package redact

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

// maxPlaces is how many values are numbered; what comes after them has a marker
// without a number. Otherwise a long list would make a run's memory grow with it.
const maxPlaces = 10_000

// places numbers values: an equal value of one kind has an equal number, so that
// a reader of a cleaned text still sees what belongs together. It keeps
// digests, not values.
type places struct {
	mu      sync.Mutex // guards both
	numbers map[[sha256.Size]byte]int
	last    map[string]int // by kind
}

// Numbered returns a Redactor with the same canaries whose markers carry a
// number, [redacted:email-2], that stands for one value as long as it is used:
// for one run, say.
func (r *Redactor) Numbered() *Redactor {
	return &Redactor{held: r.held, personal: r.personal, places: &places{numbers: map[[sha256.Size]byte]int{}, last: map[string]int{}}}
}

// marker returns what stands in the place of a value.
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
