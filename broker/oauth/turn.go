package oauth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
)

// turn is the right to change a sign-in, which one process has at a time: an authorization server may end a sign-in if
// two use its refresh token. On a single machine it is a lock of a file, which ends with the process. In a cluster it
// is a row that expires. Its holder stores nothing afterwards.
type turn struct {
	store  *Store
	db     *database.DB
	own    *agekey.Own
	id     string
	holder string
	lock   *store.Lock // nil in a cluster
}

const (
	// turnTime is how long a turn lasts in a cluster, unless it ends earlier: longer than the requests of a refresh.
	turnTime = time.Minute
	// turnInterval is how often a process that waits for its turn asks.
	turnInterval = 50 * time.Millisecond
	// saveTime is how long a process tries to store a new token while the database does not answer. The former refresh
	// token is worth nothing any more.
	saveTime = 20 * time.Second
)

var errTurnOver = errors.New("another process changes this sign-in now; try again")

// turn waits until no other process changes the sign-in.
func (s *Store) turn(ctx context.Context, id string) (*turn, error) {
	db, own, err := s.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("waiting for a stored sign-in: %w", err)
	}
	t := &turn{store: s, db: db, own: own, id: id, holder: newID()}
	if !db.IsShared() {
		if err = os.MkdirAll(s.opts.Directory, 0o700); err == nil {
			t.lock, err = store.Acquire(ctx, filepath.Join(s.opts.Directory, id+".lock"), store.Exclusive)
		}
		if err != nil {
			return nil, fmt.Errorf("waiting for a stored sign-in: %w", err)
		}
		return t, nil
	}
	for {
		taken, err := t.take(ctx)
		switch {
		case err != nil:
			return nil, errors.Join(away(db, fmt.Errorf("waiting for a stored sign-in: %w", err)), t.release())
		case taken:
			return t, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for a stored sign-in: %w", ctx.Err())
		case <-time.After(turnInterval):
		}
	}
}

func (t *turn) take(ctx context.Context) (bool, error) {
	return t.db.Change(ctx, `INSERT INTO sign_in_turn VALUES (?, ?, unixepoch() + ?)
		ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, until = excluded.until
		WHERE sign_in_turn.until <= unixepoch()`, t.id, t.holder, int64(turnTime/time.Second))
}

// save replaces the sign-in durably and returns its revision. In a cluster, it waits for the database.
func (t *turn) save(r *record) (revision string, err error) {
	sealed, err := seal(r, t.own)
	if err != nil {
		return "", fmt.Errorf("storing a sign-in: %w", err)
	}
	revision = newID()
	for end := time.Now().Add(saveTime); ; {
		err := t.update("INSERT INTO sign_in VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET "+
			"revision = excluded.revision, sealed = excluded.sealed", t.id, revision, sealed)
		if !isAway(err) || errors.Is(err, database.ErrClosed) || time.Now().After(end) {
			return revision, err
		}
		time.Sleep(turnInterval)
	}
}

// remove deletes the sign-in, which may be missing.
func (t *turn) remove() error { return t.update("DELETE FROM sign_in WHERE id = ?", t.id) }

// update executes a statement if the turn has not ended.
func (t *turn) update(statement string, args ...any) error {
	defer t.store.changes.Add(1)
	ctx := context.Background() // a token that was issued must not be lost
	err := t.db.Update(ctx, func(tx database.Tx) error {
		if t.lock == nil {
			var holds bool
			if err := tx.QueryRowContext(ctx, "SELECT count(*) > 0 FROM sign_in_turn WHERE id = ? AND holder = ? AND "+
				"until > unixepoch()", t.id, t.holder).Scan(&holds); err != nil {
				return err
			}
			if !holds {
				return errTurnOver
			}
		}
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
	switch {
	case errors.Is(err, errTurnOver):
		return err
	case err != nil:
		return away(t.db, fmt.Errorf("storing a sign-in: %w", err))
	}
	return nil
}

// release ends the turn.
func (t *turn) release() error {
	if t.lock != nil {
		return t.lock.Release()
	}
	// Otherwise it expires.
	_ = t.db.Exec(context.Background(), "DELETE FROM sign_in_turn WHERE id = ? AND holder = ?", t.id, t.holder)
	return nil
}
