package agents

import (
	"context"
	"sync"
)

// smallInput is the maximum size of a request that is read and assessed without waiting for a turn.
const smallInput = 16 << 10

// turns lets each account read and assess one large request at a time, so that no account can use
// all processors with hostile input. The zero value is ready to use. It is safe for concurrent use.
type turns struct {
	mu       sync.Mutex
	accounts map[string]*turn
}

type turn struct {
	busy  chan struct{} // holds a value while a request is assessed
	users int           // number of requests that wait or have the turn
}

// begin waits for the turn of an account with a request of a size. The caller must call done. The error is that of ctx.
func (t *turns) begin(ctx context.Context, account string, size int) (done func(), err error) {
	if size <= smallInput {
		return func() {}, ctx.Err()
	}
	own := t.enter(account)
	select {
	case own.busy <- struct{}{}:
		return func() { <-own.busy; t.leave(account, own) }, nil
	case <-ctx.Done():
		t.leave(account, own)
		return nil, ctx.Err()
	}
}

func (t *turns) enter(account string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.accounts[account]
	if own == nil {
		own = &turn{busy: make(chan struct{}, 1)}
		if t.accounts == nil {
			t.accounts = map[string]*turn{}
		}
		t.accounts[account] = own
	}
	own.users++
	return own
}

func (t *turns) leave(account string, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.accounts, account)
	}
}
