package clusterlimit

import (
	"context"
	"database/sql"
	"fmt"
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

// slots is the number of slots of a window. A request counts until its slot has left the window.
const slots = 60

// Requests is an admission.Limiter in the database of a cluster, with a sliding window. If the database cannot be
// reached, requests are refused. It is safe for concurrent use.
type Requests struct {
	*limiter
	window window
}

var _ admission.Limiter = (*Requests)(nil)

// NewRequests returns a limiter of the rate of each principal. db has Schema. The caller must close it before db.
func NewRequests(db *database.DB, rate admission.Rate) *Requests {
	w := window{rate, max(rate.Per/slots, time.Millisecond)}
	return &Requests{&limiter{counter: w, db: db, every: rate.Per, of: map[string]*share{}}, w}
}

// Allow counts a request. It returns admission.ErrTooOften if there were too many, or an error that wraps
// admission.ErrState and that of the database. Requests of one principal wait for each other.
func (r *Requests) Allow(ctx context.Context, principal string) error {
	_, ok, err := r.use(ctx, principal, r.window.rate)
	switch {
	case err != nil:
		return fmt.Errorf("%w: counting a request: %w", admission.ErrState, err)
	case !ok:
		return admission.ErrTooOften
	}
	return nil
}

// window is the counter of requests.
type window struct {
	rate admission.Rate
	slot time.Duration
}

// wanted is one for a slow agent. Otherwise it is an eighth of the requests that the node has taken in this slot, up to
// a thousandth of the limit.
func (w window) wanted(_ admission.Rate, taken int) int {
	return max(1, min(taken/8, w.rate.Calls/1000))
}

// take takes requests that count as used when the slot ends.
func (w window) take(ctx context.Context, tx database.Tx, r request) (grant, error) {
	var used int
	var oldest sql.NullInt64
	err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(requests), 0), min(at) FROM request_rate
		WHERE principal = ? AND at > ? AND at <= ?`, r.key, w.left(r.now), r.now.UnixMilli()).Scan(&used, &oldest)
	if err != nil {
		return grant{}, err
	}
	granted := min(r.n, w.rate.Calls-used)
	if granted <= 0 {
		return grant{next: time.UnixMilli(oldest.Int64).Add(w.slot + w.rate.Per).Sub(r.now)}, nil
	}
	begins := r.now.Truncate(w.slot)
	_, err = tx.ExecContext(ctx, `INSERT INTO request_rate VALUES (?, ?, ?) ON CONFLICT (principal, at)
		DO UPDATE SET requests = request_rate.requests + excluded.requests`, r.key, begins.UnixMilli(), granted)
	return grant{n: granted, until: begins.Add(w.slot).Sub(r.now)}, err
}

// left returns the beginning of the newest slot that has left the window.
func (w window) left(now time.Time) int64 { return now.Add(-w.rate.Per - w.slot).UnixMilli() }

// sweep also removes rows that are later than the clock of the database: they are from before it was set back.
func (w window) sweep(ctx context.Context, tx database.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM request_rate WHERE at <= ? OR at > ?", w.left(now), now.UnixMilli())
	return err
}
