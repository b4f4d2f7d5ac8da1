package daemon

import (
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How often what clients can cause is logged, for each of its kinds.
const (
	loggedAtOnce = 5
	loggedPause  = 10 * time.Second // then one more
)

// seldom keeps clients from filling the operator's log with one kind of line.
type seldom struct {
	mu       sync.Mutex // guards what follows
	rate     *rate.Limiter
	unlogged int // since the last that was logged
}

func newSeldom() *seldom {
	return &seldom{rate: rate.NewLimiter(rate.Every(loggedPause), loggedAtOnce)}
}

// take reports whether one more line may be logged now, with what it has to say of those
// that were not since the last.
func (s *seldom) take() (unlogged []slog.Attr, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.rate.Allow() {
		s.unlogged++
		return nil, false
	}
	if s.unlogged > 0 {
		unlogged = []slog.Attr{slog.Int("not_logged", s.unlogged)}
	}
	s.unlogged = 0
	return unlogged, true
}
