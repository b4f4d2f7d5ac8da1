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

// logLimit limits how often one kind of line is logged, so that clients cannot fill the
// operator's log.
type logLimit struct {
	mu       sync.Mutex // guards what follows
	rate     *rate.Limiter
	unlogged int // since the last that was logged
}

func newLogLimit() *logLimit {
	return &logLimit{rate: rate.NewLimiter(rate.Every(loggedPause), loggedAtOnce)}
}

// take reports whether one more line may be logged now, with what it has to say of those
// that were not since the last.
func (l *logLimit) take() (unlogged []slog.Attr, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.rate.Allow() {
		l.unlogged++
		return nil, false
	}
	if l.unlogged > 0 {
		unlogged = []slog.Attr{slog.Int("not_logged", l.unlogged)}
	}
	l.unlogged = 0
	return unlogged, true
}
