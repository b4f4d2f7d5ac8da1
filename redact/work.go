package redact

import (
	"hash/maphash"
	"math"
)

// The cost of a search is counted in units. One unit is the cost of passing one byte
// through the finders that read every byte, about 20 ns on the machines of 2025.
const (
	// workPerByte is the number of units that a search may use for each byte of the text. Ordinary
	// text takes 1 to 6, and JSON within JSON with colours and URLs up to 12.
	workPerByte = 24
	// minWork is the number of units that a search of any text may use.
	minWork = 1 << 20
)

// kindUnscanned is the kind of text that was too expensive to search. It is removed.
const kindUnscanned = "unscanned-text"

// work is the budget of one search: of a text or of all strings of one JSON value, including
// everything decoded from it. If it is exhausted, the rest of the text counts as found.
type work struct {
	left  int
	limit int
	// known are the spans found in texts that were already searched. Undoing the same escapes in
	// another order often gives the same text.
	known map[uint64][]span
	seed  maphash.Seed
}

func newWork(size int) *work {
	limit := minWork
	if size < (math.MaxInt-minWork)/workPerByte {
		limit += workPerByte * size
	}
	return &work{left: limit, limit: limit}
}

// spend takes units from the budget and reports whether it is not exhausted.
func (w *work) spend(units int) bool {
	w.left -= units
	return w.left >= 0
}

func (w *work) exhausted() bool { return w.left < 0 }

// key identifies a text that is searched to a depth.
func (w *work) key(text []byte, d depth) uint64 {
	if w.known == nil {
		w.known, w.seed = map[uint64][]span{}, maphash.MakeSeed()
	}
	var h maphash.Hash
	h.SetSeed(w.seed)
	h.WriteByte(byte(d.encodings))
	h.WriteByte(byte(d.escapes))
	h.Write(text)
	return h.Sum64()
}
