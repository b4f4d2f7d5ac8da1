package agents

import (
	"context"
	"sync"
	"time"
)

// maxKeys is how many principals one window counts; when there are more, those
// that asked longest ago make room.
const maxKeys = 100_000

// Window is a Limiter in memory: at most a number of requests in any span of
// time that ends now.
type Window struct {
	most int
	span time.Duration
	now  func() time.Time

	mu   sync.Mutex
	seen map[string][]time.Time // when each key asked, oldest first
}

// NewWindow returns a Limiter that allows most requests of a key within a span;
// now is its clock, nil for time.Now.
func NewWindow(most int, span time.Duration, now func() time.Time) *Window {
	if now == nil {
		now = time.Now
	}
	return &Window{most: most, span: span, now: now, seen: map[string][]time.Time{}}
}

// Allow counts a request, or returns ErrTooOften. A request that is refused is
// not counted.
func (w *Window) Allow(_ context.Context, key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	seen := w.recent(w.seen[key], now)
	if len(seen) >= w.most {
		w.seen[key] = seen
		return ErrTooOften
	}
	if _, known := w.seen[key]; !known && len(w.seen) >= maxKeys {
		w.sweep(now)
		if len(w.seen) >= maxKeys {
			return ErrTooOften // counting has no room, and what is not counted is not allowed
		}
	}
	w.seen[key] = append(seen, now)
	return nil
}

// recent leaves out what lies before the span. A clock that is set back does not
// make old requests recent for longer than the span.
func (w *Window) recent(seen []time.Time, now time.Time) []time.Time {
	kept := seen[:0]
	for _, at := range seen {
		if age := now.Sub(at); age < w.span && age > -w.span {
			kept = append(kept, at)
		}
	}
	return kept
}

func (w *Window) sweep(now time.Time) {
	for key, seen := range w.seen {
		if len(w.recent(seen, now)) == 0 {
			delete(w.seen, key)
		}
	}
}
