package admission

import (
	"context"
	"sync"
	"time"
)

// maxKeys is the number of principals counted by one window. If there are more, the least recently
// active ones are evicted.
const maxKeys = 100_000

// Window is an in-memory Limiter with a sliding window: it allows a fixed number of requests in any
// span of time that ends now.
type Window struct {
	most int
	span time.Duration
	now  func() time.Time

	mu   sync.Mutex
	seen map[string][]time.Time // times of each key's requests, oldest first
}

// NewWindow returns a Limiter that allows most requests per key within a span. If now is nil,
// time.Now is used.
func NewWindow(most int, span time.Duration, now func() time.Time) *Window {
	if now == nil {
		now = time.Now
	}
	return &Window{most: most, span: span, now: now, seen: map[string][]time.Time{}}
}

// Allow counts a request, or returns ErrTooOften. A refused request is not counted.
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
			return ErrTooOften // the table is full, and requests that cannot be counted are not allowed
		}
	}
	w.seen[key] = append(seen, now)
	return nil
}

// recent returns the times within the span. A clock that is set back does not keep old requests in
// the window for longer than the span.
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
