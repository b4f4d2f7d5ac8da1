package runs

import (
	"context"
	"slices"
	"sync"
)

// turns lets a number of holders work at one time: the next one is of the account with the
// fewest that work, and of these the first that asked.
type turns struct {
	mu      sync.Mutex
	free    int
	working map[string]int // by account; never 0
	waiting []*turn        // in the order in which they asked
}

func newTurns(n int) *turns { return &turns{free: n, working: map[string]int{}} }

// turn is a place in the line. It belongs to one goroutine.
type turn struct {
	of      *turns
	account string
	come    chan struct{} // closed when the holder may work
}

// join takes the last place of an account in the line.
func (t *turns) join(account string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := &turn{of: t, account: account, come: make(chan struct{})}
	t.waiting = append(t.waiting, mine)
	t.nextLocked()
	return mine
}

// nextLocked lets holders work for as long as there is room.
func (t *turns) nextLocked() {
	for t.free > 0 && len(t.waiting) > 0 {
		next := 0
		for i, waiter := range t.waiting {
			if t.working[waiter.account] < t.working[t.waiting[next].account] {
				next = i
			}
		}
		chosen := t.waiting[next]
		t.waiting = slices.Delete(t.waiting, next, next+1)
		t.free--
		t.working[chosen.account]++
		close(chosen.come)
	}
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
	t.of.free++
	if t.of.working[t.account]--; t.of.working[t.account] == 0 {
		delete(t.of.working, t.account)
	}
	t.of.nextLocked()
}
