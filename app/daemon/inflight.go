package daemon

import (
	"context"
	"sync/atomic"
)

// inFlight counts requests that are being answered.
type inFlight struct {
	n    atomic.Int64
	over chan struct{} // holds a value after a request has been answered
}

func newInFlight() *inFlight { return &inFlight{over: make(chan struct{}, 1)} }

// begin counts a request until the returned function is called.
func (f *inFlight) begin() (end func()) {
	f.n.Add(1)
	return func() {
		f.n.Add(-1)
		select {
		case f.over <- struct{}{}:
		default: // it holds a value already
		}
	}
}

// wait waits until no request is being answered, or ctx is done.
func (f *inFlight) wait(ctx context.Context) {
	for f.n.Load() > 0 {
		select {
		case <-f.over:
		case <-ctx.Done():
			return
		}
	}
}
