package server

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// connections are the connected hosts that do not use HTTP.
type connections struct {
	answered chan struct{} // gets a value when a host may have received its last answer

	mu   *sync.Mutex
	open map[*lineFilter]bool
}

func newConnections() connections {
	return connections{answered: make(chan struct{}, 1), mu: &sync.Mutex{}, open: map[*lineFilter]bool{}}
}

// add registers a connection until the caller calls remove.
func (c connections) add(f *lineFilter) (remove func()) {
	f.answered = c.answered
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[f] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, f)
		notify(c.answered)
	}
}

// notify sends to a channel unless its buffer is full.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Settle waits until every connected host that does not use HTTP has received the answers to its
// calls, or ctx ends. It is for shutdown: no new calls should begin.
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
