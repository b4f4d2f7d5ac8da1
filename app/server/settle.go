package server

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// connections are the hosts that are connected other than over HTTP.
type connections struct {
	answered chan struct{} // holds a value when a host may have got its last answer

	mu   *sync.Mutex
	open map[*lineFilter]bool
}

func newConnections() connections {
	return connections{answered: make(chan struct{}, 1), mu: &sync.Mutex{}, open: map[*lineFilter]bool{}}
}

// add notes a connection until the returned function is called.
func (c connections) add(f *lineFilter) (remove func()) {
	f.answered = c.answered
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[f] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, f)
		tell(c.answered)
	}
}

// tell leaves a value in a channel that has room for one.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Settle waits until every host that is connected other than over HTTP has got the
// answers to its calls, or ctx ends. It is for the end: no new call should begin.
func (t *Transport) Settle(ctx context.Context) {
	for {
		t.connected.mu.Lock()
		open := slices.Collect(maps.Keys(t.connected.open))
		t.connected.mu.Unlock()
		if !slices.ContainsFunc(open, (*lineFilter).isCalling) {
			return
		}
		select {
		case <-t.connected.answered:
		case <-ctx.Done():
			return
		}
	}
}
