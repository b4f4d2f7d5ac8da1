package upstream

import (
	"context"
	"errors"
	"sync"
	"time"
)

// patience ends a request that has waited too long for its server. While the
// server waits for a person, the time stands still.
type patience struct {
	limit time.Duration
	timer *time.Timer

	mu     sync.Mutex
	asking int // questions that are being answered
}

// errImpatient is the cause of a context that patience has ended.
var errImpatient = errors.New("the server did not answer in time")

// withPatience returns a context that ends after limit, pauses left out.
func withPatience(ctx context.Context, limit time.Duration) (context.Context, *patience, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &patience{limit: limit, timer: time.AfterFunc(limit, func() { cancel(errImpatient) })}
	return ctx, p, func() {
		p.timer.Stop()
		cancel(nil)
	}
}

// pause begins a time that does not count.
func (p *patience) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking++
	p.timer.Stop()
}

// resume ends it: the server has the whole limit again.
func (p *patience) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking--; p.asking == 0 {
		p.timer.Reset(p.limit)
	}
}

// timedOut reports whether ctx ended because time was over.
func timedOut(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), errImpatient)
}

// cancelled reports whether ctx ended for another reason.
func cancelled(ctx context.Context) bool { return ctx.Err() != nil && !timedOut(ctx) }
