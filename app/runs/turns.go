package runs

import (
	"context"
	"slices"
	"sync"
)

// turns limits how many holders work concurrently. The next turn goes to the account with the
// fewest working holders, and within it to the first in the queue.
type turns struct {
	mu      sync.Mutex
	free    int
	working map[string]int // by account; never 0
	waiting []*turn        // in the order in which they asked
}

func newTurns(n int) *turns { return &turns{free: n, working: map[string]int{}} }

// turn is a place in the queue. It is not safe for concurrent use.
type turn struct {
	of      *turns
	account string
	come    chan struct{} // closed when the holder may work
}

// join adds a holder of an account to the end of the queue.
func (t *turns) join(account string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := &turn{of: t, account: account, come: make(chan struct{})}
	t.waiting = append(t.waiting, mine)
	t.nextLocked()
	return mine
}

// nextLocked gives free turns to waiting holders.
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

// wait returns when the holder may work. If ctx ends first, wait leaves the queue and returns an
// error.
func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.come:
		return nil
	case <-ctx.Done():
		t.leave()
		return ctx.Err()
	}
}

// leave removes the holder from the queue or releases its turn. It must be called once.
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
