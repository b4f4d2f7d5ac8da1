package daemon

import (
	"context"
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

// limitedHandler hands on each message as often as a logLimit allows: what clients can cause is
// logged with it, whatever it is. Messages are static words, so there are few of them.
type limitedHandler struct {
	slog.Handler
	limits *logLimits // by message
}

// logLimits are those of several kinds of lines, of which there are few.
type logLimits struct {
	mu sync.Mutex
	of map[string]*logLimit
}

func newLogLimits() *logLimits { return &logLimits{of: map[string]*logLimit{}} }

// named returns the limit of a kind.
func (l *logLimits) named(kind string) *logLimit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[kind] == nil {
		l.of[kind] = newLogLimit()
	}
	return l.of[kind]
}

// newLimitedHandler returns a handler in front of another. Of what is below the level of a
// warning nothing is held back.
func newLimitedHandler(next slog.Handler) slog.Handler {
	return &limitedHandler{next, newLogLimits()}
}

// Handle hands on a record, with how many of its message were not.
func (h *limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	unlogged, ok := h.limits.named(r.Message).take()
	if !ok {
		return nil
	}
	r = r.Clone()
	r.AddAttrs(unlogged...)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs is as slog.Handler has it; messages are counted together with the receiver's.
func (h *limitedHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &limitedHandler{h.Handler.WithAttrs(attributes), h.limits}
}

// WithGroup is as slog.Handler has it; messages are counted together with the receiver's.
func (h *limitedHandler) WithGroup(name string) slog.Handler {
	return &limitedHandler{h.Handler.WithGroup(name), h.limits}
}
