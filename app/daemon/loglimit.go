package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How often one kind of line is logged that clients can cause.
const (
	loggedAtOnce = 5
	loggedPause  = 10 * time.Second // for each further line
)

// logLimit limits how often one kind of line is logged, so that clients cannot fill the
// operator's log.
type logLimit struct {
	mu       sync.Mutex // guards what follows
	rate     *rate.Limiter
	unlogged int // since the last line that was logged
}

func newLogLimit() *logLimit {
	return &logLimit{rate: rate.NewLimiter(rate.Every(loggedPause), loggedAtOnce)}
}

// take reports whether one more line may be logged now. unlogged is an attribute with the
// number of lines that were suppressed since the last one, if there were any.
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

// limitedHandler is a slog.Handler with a logLimit for each message. It is used for all events
// that clients can cause. Messages are constants, so the number of limits is bounded.
type limitedHandler struct {
	slog.Handler
	limits *logLimits // by message
}

// logLimits holds a limit for each kind of line. The number of kinds must be small.
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

// newLimitedHandler returns a handler that limits the records for next. Records below the
// level of a warning are not limited.
func newLimitedHandler(next slog.Handler) slog.Handler {
	return &limitedHandler{next, newLogLimits()}
}

// Handle passes a record to the next handler, with the number of suppressed records that had
// the same message.
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

// WithAttrs implements slog.Handler. The result shares the limits of the receiver.
func (h *limitedHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &limitedHandler{h.Handler.WithAttrs(attributes), h.limits}
}

// WithGroup implements slog.Handler. The result shares the limits of the receiver.
func (h *limitedHandler) WithGroup(name string) slog.Handler {
	return &limitedHandler{h.Handler.WithGroup(name), h.limits}
}
