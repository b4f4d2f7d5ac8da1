package runner

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// ErrBusy says that as many sandboxes run and as many callers wait as are
// allowed. It is worth trying again later.
var ErrBusy = errors.New("too many sandboxes: all are in use and the queue is full")

// queue is a semaphore with a bounded number of waiters, served first come,
// first served.
type queue struct {
	slots   *semaphore.Weighted
	waiters chan struct{} // one element for each caller that waits
	taken   atomic.Int64  // slots in use
}

func newQueue(slots, waiters int) *queue {
	return &queue{slots: semaphore.NewWeighted(int64(slots)), waiters: make(chan struct{}, waiters)}
}

// reserve takes a slot, waiting for one if it must. It returns ErrBusy when too
// many wait already, and the context's cause when that ends first.
func (q *queue) reserve(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if q.slots.TryAcquire(1) {
		q.taken.Add(1)
		return nil
	}
	select {
	case q.waiters <- struct{}{}:
		defer func() { <-q.waiters }()
	default:
		return ErrBusy
	}
	if q.slots.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	q.taken.Add(1)
	return nil
}

// release frees a slot for the next waiter.
func (q *queue) release() {
	q.taken.Add(-1)
	q.slots.Release(1)
}
