// Package clusterlimit limits rates over all nodes of a cluster, in its database: Requests limits the requests of
// agents, Calls the calls to servers and tools.
//
// A node does not ask the database about each of them. It takes several at once from the limit, the more it has taken
// lately, and uses them without the database until they expire.
package clusterlimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/database"
)

// maxShares is the number of keys whose shares are kept.
const maxShares = 10_000

// counter counts the units that all nodes have taken, in a table.
type counter interface {
	// wanted returns how many units a node takes at once if it has taken a number of them lately.
	wanted(of admission.Rate, taken int) int
	// take takes units in a transaction.
	take(ctx context.Context, tx database.Tx, r request) (grant, error)
	// sweep removes the rows that count no longer.
	sweep(ctx context.Context, tx database.Tx, now time.Time) error
}

// request asks for up to n units of a key.
type request struct {
	key string
	of  admission.Rate
	n   int
	now time.Time // of the database
}

// grant has the units that a transaction has taken. Its times begin with the transaction.
type grant struct {
	n     int
	next  time.Duration // until the first unit may be used; if n is 0, until there is one
	step  time.Duration // between two units
	until time.Duration // until the units that are left count as used
}

// limiter takes units for this node and keeps those that are not used yet.
type limiter struct {
	counter counter
	db      *database.DB
	longest time.Duration // how long a caller waits for a unit
	every   time.Duration // how often rows are removed
	away    atomic.Int64  // when the database was last given up, as UnixNano; 0 since it has answered
	running sync.WaitGroup

	mu     sync.Mutex        // guards the fields below, but not what the pointers lead to
	of     map[string]*share // by key
	swept  time.Time         // when old rows were removed
	closed bool
}

// share is the part of a limit that this node may use.
type share struct {
	mu          sync.Mutex // guards the fields below
	left        int        // units that were taken and not used
	taken       int        // units that were taken since the last ones have expired
	step        time.Duration
	next, until time.Time
	taking      *taking // nil if no transaction runs
}

// taking is a transaction that takes units for a share. The fields are set when done is closed.
type taking struct {
	done chan struct{}
	grant
	err error
}

// have uses a unit of a key that this node has taken. known is false if only the database knows whether there is one.
func (l *limiter) have(key string) (wait time.Duration, ok, known bool) {
	s := l.share(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.useLocked(time.Now(), l.longest)
}

// use uses a unit of a key. The caller must wait before it proceeds. If that is longer than l.longest, ok is false and
// no unit is used. The error is that of the database or of ctx. Callers that need units of one key share a transaction.
func (l *limiter) use(ctx context.Context, key string, of admission.Rate) (wait time.Duration, ok bool, err error) {
	s := l.share(key)
	for {
		s.mu.Lock()
		wait, ok, known := s.useLocked(time.Now(), l.longest)
		t := s.taking
		if !known && t == nil {
			t = l.takeLocked(ctx, s, key, of)
		}
		s.mu.Unlock()
		if known {
			return wait, ok, nil
		}
		select {
		case <-t.done:
			if t.err != nil || t.n == 0 {
				return t.next, false, t.err
			}
		case <-ctx.Done():
			return 0, false, ctx.Err()
		}
	}
}

func (l *limiter) share(key string) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.of[key]
	if !known {
		if len(l.of) >= maxShares {
			clear(l.of) // what they have left counts as used
		}
		s = &share{}
		l.of[key] = s
	}
	return s
}

// useLocked is limiter.have for the share of a key.
func (s *share) useLocked(now time.Time, longest time.Duration) (wait time.Duration, ok, known bool) {
	if !now.Before(s.until) {
		s.left, s.taken = 0, 0
	}
	wait = max(s.next.Sub(now), 0)
	switch {
	case wait > longest:
		return wait, false, true
	case s.left == 0:
		return 0, false, false
	}
	s.left--
	s.next = s.next.Add(s.step)
	return wait, true, true
}

// takeLocked begins a transaction that takes units for a share that has none. It is not cancelled with ctx:
// later callers use the units.
func (l *limiter) takeLocked(ctx context.Context, s *share, key string, of admission.Rate) *taking {
	t := &taking{done: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		t.err = database.ErrClosed
		close(t.done)
		return t
	}
	s.taking = t
	r := request{key: key, of: of, n: l.counter.wanted(of, s.taken)}
	l.running.Go(func() {
		began, g, err := l.transact(context.WithoutCancel(ctx), r)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			l.away.Store(0)
			s.left, s.taken, s.step = g.n, s.taken+g.n, g.step
			s.next, s.until = began.Add(g.next), began.Add(g.until)
		}
		s.taking, t.grant, t.err = nil, g, err
		close(t.done)
	})
	return t
}

// transact takes units. The times of a share are those of this machine, and too early rather than too late by the time
// that the transaction takes.
func (l *limiter) transact(ctx context.Context, r request) (began time.Time, g grant, err error) {
	if err := l.sweep(ctx); err != nil {
		return began, g, err
	}
	err = l.db.Update(ctx, func(tx database.Tx) (err error) {
		began = time.Now()
		if r.now, err = clock(ctx, tx); err == nil {
			g, err = l.counter.take(ctx, tx, r)
		}
		return err
	})
	return began, g, err
}

// sweep removes the rows that count no longer, once in a while.
func (l *limiter) sweep(ctx context.Context) error {
	l.mu.Lock()
	due := time.Since(l.swept) >= l.every
	if due {
		l.swept = time.Now()
	}
	l.mu.Unlock()
	if !due {
		return nil
	}
	return l.db.Update(ctx, func(tx database.Tx) error {
		now, err := clock(ctx, tx)
		if err == nil {
			err = l.counter.sweep(ctx, tx, now)
		}
		return err
	})
}

// clock returns the time of the database.
func clock(ctx context.Context, tx database.Tx) (time.Time, error) {
	var seconds float64
	err := tx.QueryRowContext(ctx, "SELECT unixepoch('subsec')").Scan(&seconds)
	return time.UnixMilli(int64(seconds * 1000)), err
}

// Close waits for transactions. Nothing more is taken from the database.
func (l *limiter) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
	return nil
}
