// Package clusterlimit limits the request rate of agents over all nodes of a cluster, with a sliding window in its
// database. If the database cannot be reached, requests are refused.
package clusterlimit

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/database"
)

// Schema creates the table of the window. A row has the requests of one principal in one slot.
const Schema = `
CREATE TABLE request_rate (
	principal TEXT NOT NULL,
	at        INTEGER NOT NULL, -- milliseconds since 1970, of the beginning of the slot
	requests  INTEGER NOT NULL,
	PRIMARY KEY (principal, at)
) STRICT, WITHOUT ROWID;`

const (
	// slots is the number of slots of a window. A request counts until its slot has left the window.
	slots = 60
	// maxShares is the number of principals whose shares are kept.
	maxShares = 10_000
)

// Limiter is an admission.Limiter in the database of a cluster. It is safe for concurrent use.
//
// Each request of a slow agent is counted by a transaction. A node that has many requests of a principal takes
// several at once from the window: up to an eighth of what it has had in this slot, and up to a thousandth of the
// limit. What it does not use until the slot ends counts as used.
type Limiter struct {
	db    *database.DB
	most  int
	span  time.Duration
	slot  time.Duration
	mu    sync.Mutex        // guards the fields below, but not what the pointers lead to
	of    map[string]*share // by principal
	swept time.Time         // when old rows were removed
}

// share is the part of the window that this node may use.
type share struct {
	mu    sync.Mutex // guards the fields below
	left  int        // requests that were taken and not used
	taken int        // requests that were taken in this slot
	until time.Time  // the end of the slot
	full  time.Time  // until then the window has no room
}

// New returns a Limiter that allows most requests per principal within a span. db has Schema.
func New(db *database.DB, most int, span time.Duration) *Limiter {
	return &Limiter{db: db, most: most, span: span, slot: max(span/slots, time.Millisecond), of: map[string]*share{}}
}

// Allow counts a request. It returns admission.ErrTooOften if there were too many, or an error that wraps
// admission.ErrState and that of the database. Requests of one principal wait for each other.
func (l *Limiter) Allow(ctx context.Context, principal string) error {
	if err := l.sweep(ctx); err != nil {
		return fmt.Errorf("%w: removing former requests: %w", admission.ErrState, err)
	}
	s := l.share(principal)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.full) {
		return admission.ErrTooOften
	}
	if !now.Before(s.until) {
		s.left, s.taken = 0, 0
	}
	if s.left == 0 {
		if err := l.take(ctx, principal, s); err != nil {
			return fmt.Errorf("%w: counting a request: %w", admission.ErrState, err)
		}
	}
	if s.left == 0 {
		return admission.ErrTooOften
	}
	s.left--
	return nil
}

func (l *Limiter) share(principal string) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.of[principal]
	if !known {
		if len(l.of) >= maxShares {
			clear(l.of) // what they have left counts as used
		}
		s = &share{}
		l.of[principal] = s
	}
	return s
}

// take takes requests from the window for a share that has none. The times of a share are those of this machine, and
// too early rather than too late by the time that the transaction takes.
func (l *Limiter) take(ctx context.Context, principal string, s *share) error {
	wanted := max(1, min(s.taken/8, l.most/1000))
	var next share
	err := l.db.Update(ctx, func(tx database.Tx) error {
		began := time.Now()
		now, err := clock(ctx, tx)
		if err != nil {
			return err
		}
		var used int
		var oldest sql.NullInt64
		err = tx.QueryRowContext(ctx, `SELECT coalesce(sum(requests), 0), min(at) FROM request_rate
			WHERE principal = ? AND at > ? AND at <= ?`, principal, l.left(now), now.UnixMilli()).Scan(&used, &oldest)
		if err != nil {
			return err
		}
		granted := min(wanted, l.most-used)
		if granted <= 0 {
			next = share{full: began.Add(time.UnixMilli(oldest.Int64).Add(l.slot + l.span).Sub(now))}
			return nil
		}
		begins := now.Truncate(l.slot)
		next = share{left: granted, taken: s.taken + granted, until: began.Add(begins.Add(l.slot).Sub(now))}
		_, err = tx.ExecContext(ctx, `INSERT INTO request_rate VALUES (?, ?, ?) ON CONFLICT (principal, at)
			DO UPDATE SET requests = request_rate.requests + excluded.requests`, principal, begins.UnixMilli(), granted)
		return err
	})
	if err == nil {
		s.left, s.taken, s.until, s.full = next.left, next.taken, next.until, next.full
	}
	return err
}

// left returns the beginning of the newest slot that has left the window.
func (l *Limiter) left(now time.Time) int64 { return now.Add(-l.span - l.slot).UnixMilli() }

// clock returns the time of the database.
func clock(ctx context.Context, tx database.Tx) (time.Time, error) {
	var seconds float64
	err := tx.QueryRowContext(ctx, "SELECT unixepoch('subsec')").Scan(&seconds)
	return time.UnixMilli(int64(seconds * 1000)), err
}

// sweep removes the rows that count no longer, once in each span. Rows that are later than the clock of the database
// are from before it was set back.
func (l *Limiter) sweep(ctx context.Context) error {
	l.mu.Lock()
	due := time.Since(l.swept) >= l.span
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
			_, err = tx.ExecContext(ctx, "DELETE FROM request_rate WHERE at <= ? OR at > ?", l.left(now),
				now.UnixMilli())
		}
		return err
	})
}
