package clusterlimit

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// SchemaCalls creates the table of the buckets. A full bucket needs no row.
const SchemaCalls = `
CREATE TABLE call_rate (
	id       TEXT PRIMARY KEY, -- SHA-256 of the server, the tool and the rate
	refilled INTEGER NOT NULL  -- when the bucket is full again; nanoseconds since 1970
) STRICT, WITHOUT ROWID;`

const (
	// patience is how long a call waits for the database, and pause how long no call does after that.
	patience = 2 * time.Second
	pause    = time.Second
	// sweepEvery is how often full buckets are removed.
	sweepEvery = time.Hour
)

// Calls limits the calls to servers and tools, with token buckets in the database of a cluster. While the database is
// away, the calls of this node are limited by buckets in memory, from which it has taken all its calls. It is safe for
// concurrent use.
type Calls struct {
	*limiter
	alone  admission.Buckets
	logger *slog.Logger
}

var _ admission.CallRates = (*Calls)(nil)

// NewCalls returns the buckets of a database, which has SchemaCalls. The caller must close them before db.
func NewCalls(db *database.DB, logger *slog.Logger) *Calls {
	return &Calls{limiter: &limiter{counter: bucket{}, db: db, longest: admission.MaxRateWait, every: sweepEvery,
		of: map[string]*share{}}, logger: logger}
}

// Take implements admission.CallRates. A changed rate gets a new bucket.
func (c *Calls) Take(ctx context.Context, key string, of admission.Rate, now time.Time) (time.Duration, bool) {
	wait, ok, err := c.together(ctx, key+"\x00"+of.String(), of)
	switch {
	case err != nil:
		return c.alone.Take(ctx, key, of, now)
	case ok:
		c.alone.Take(ctx, key, of, now)
		return wait, true
	}
	return admission.RetryAfter(wait), false
}

// together uses a call of the cluster. After a failure it does not ask the database for a while, and then it asks
// without having a call wait for the answer.
func (c *Calls) together(ctx context.Context, key string, of admission.Rate) (time.Duration, bool, error) {
	if wait, ok, known := c.have(key); known {
		return wait, ok, nil
	}
	longest := patience
	if away := c.away.Load(); away != 0 {
		now := time.Now().UnixNano()
		if now-away < int64(pause) || !c.away.CompareAndSwap(away, now) {
			return 0, false, database.ErrUnavailable
		}
		longest = 0
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	wait, ok, err := c.use(ctx, key, of)
	if err != nil && !errors.Is(err, database.ErrClosed) && c.away.CompareAndSwap(0, time.Now().UnixNano()) {
		c.logger.WarnContext(ctx, "the database of the cluster does not answer, so this node limits its calls alone",
			slog.Any(telemetry.KeyError, err))
	}
	return wait, ok, err
}

// bucket is the counter of calls. It is refilled evenly. Its level follows from the time at which it will be full.
type bucket struct{}

// step returns the time in which a token returns.
func step(of admission.Rate) time.Duration { return max(of.Per/time.Duration(of.Calls), 1) }

// wanted is one for a slow rate or a small one. Otherwise it is the tokens of a second, or an eighth of those that the
// node has taken if that is more, up to a twentieth of the limit, or of the tokens of a second if that is more.
func (bucket) wanted(of admission.Rate, taken int) int {
	perSecond := int(time.Second / step(of))
	return max(1, min(max(taken/8, perSecond), max(of.Calls, perSecond)/20))
}

// take takes tokens that the bucket has, or for which a call waits. They expire when the bucket would be full without
// them.
func (bucket) take(ctx context.Context, tx database.Tx, r request) (grant, error) {
	sum := sha256.Sum256([]byte(r.key))
	id := hex.EncodeToString(sum[:])
	var refilled int64
	err := tx.QueryRowContext(ctx, "SELECT refilled FROM call_rate WHERE id = ?", id).Scan(&refilled)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return grant{}, err
	}
	full, latest, step := time.Unix(0, refilled), r.now.Add(r.of.Per+admission.MaxRateWait), step(r.of)
	if full.Before(r.now) || full.After(latest) { // after latest, it is from before the clock was set back
		full = r.now
	}
	g := grant{n: min(r.n, int(latest.Sub(full)/step)), step: step, next: full.Add(step - r.of.Per).Sub(r.now)}
	if g.n == 0 {
		return g, nil
	}
	taken := time.Duration(g.n) * step
	g.until = max(g.next+taken, 0) + r.of.Per
	_, err = tx.ExecContext(ctx, `INSERT INTO call_rate VALUES (?, ?)
		ON CONFLICT (id) DO UPDATE SET refilled = excluded.refilled`, id, full.Add(taken).UnixNano())
	return g, err
}

func (bucket) sweep(ctx context.Context, tx database.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM call_rate WHERE refilled <= ?", now.UnixNano())
	return err
}
