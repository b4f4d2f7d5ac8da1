package upstream

import (
	"context"
	"errors"
	"sync"
	"time"
)

// PausableTimeout ends a request that has waited too long for its server. While the
// server waits for a person, the timeout is paused, and so are those of the contexts
// that its context was derived from. Its methods may be called concurrently.
type PausableTimeout struct {
	limit time.Duration
	timer *time.Timer
	outer *PausableTimeout // nil if there is none

	mu     sync.Mutex
	asking int // questions that are being answered
}

// errTimeout is the cause of a context that PausableTimeout has ended.
var errTimeout = errors.New("the server did not answer in time")

type timeoutKey struct{}

// WithPausableTimeout returns a context that ends after limit, pauses left out.
func WithPausableTimeout(ctx context.Context, limit time.Duration) (context.Context, *PausableTimeout,
	context.CancelFunc) {
	outer, _ := ctx.Value(timeoutKey{}).(*PausableTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	p := &PausableTimeout{limit: limit, timer: time.AfterFunc(limit, func() { cancel(errTimeout) }), outer: outer}
	return context.WithValue(ctx, timeoutKey{}, p), p, func() {
		p.timer.Stop()
		cancel(nil)
	}
}

// Pause begins a time that does not count.
func (p *PausableTimeout) Pause() {
	if p.outer != nil {
		p.outer.Pause()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking++
	p.timer.Stop()
}

// Resume ends it: the server has the whole limit again.
func (p *PausableTimeout) Resume() {
	if p.outer != nil {
		p.outer.Resume()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking--; p.asking == 0 {
		p.timer.Reset(p.limit)
	}
}

// Restart gives the server the whole limit again, because it has answered.
func (p *PausableTimeout) Restart() {
	p.Pause()
	p.Resume()
}

// TimedOut reports whether ctx ended because time was over.
func TimedOut(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), errTimeout)
}

// cancelled reports whether ctx ended for another reason.
func cancelled(ctx context.Context) bool { return ctx.Err() != nil && !TimedOut(ctx) }
