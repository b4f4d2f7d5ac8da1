package runs

import (
	"context"
	"slices"
	"sync"
)

// turns lets a number of holders work at one time, in the order in which they asked.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []*turn // the first one is next
}

func newTurns(n int) *turns { return &turns{free: n} }

// turn is a place in the line. It belongs to one goroutine.
type turn struct {
	of   *turns
	come chan struct{} // closed when the holder may work
}

// join takes the last place of the line.
func (t *turns) join() *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := &turn{of: t, come: make(chan struct{})}
	if t.free > 0 {
		t.free--
		close(mine.come)
	} else {
		t.waiting = append(t.waiting, mine)
	}
	return mine
}

// wait returns when the holder may work. On an error it may not, and never will.
func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.come:
		return nil
	case <-ctx.Done():
		t.leave()
		return ctx.Err()
	}
}

// leave gives the place back, whether its turn has come or not. It is called once.
func (t *turn) leave() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if at := slices.Index(t.of.waiting, t); at >= 0 {
		t.of.waiting = slices.Delete(t.of.waiting, at, at+1)
		return
	}
	if len(t.of.waiting) == 0 {
		t.of.free++
		return
	}
	next := t.of.waiting[0]
	t.of.waiting = slices.Delete(t.of.waiting, 0, 1)
	close(next.come)
}
