package auth

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
)

// SchemaUses makes the table of the days on which credentials were last used.
const SchemaUses = `
CREATE TABLE credential_use (
	id  TEXT PRIMARY KEY, -- of a token or an agent
	day INTEGER NOT NULL  -- its beginning in UTC, in seconds since 1970
) STRICT;`

// uses are the credentials whose use today is already in the database.
type uses struct {
	mu   sync.Mutex // guards the fields below
	day  int64
	seen map[string]struct{}
}

// add returns those of the credentials that were not used before on that day.
func (u *uses) add(day int64, credentials []caller.Credential) (first []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.day != day {
		u.day, u.seen = day, map[string]struct{}{}
	}
	for _, one := range credentials {
		if _, ok := u.seen[one.ID]; !ok && (strings.HasPrefix(one.ID, tokenID) || strings.HasPrefix(one.ID, agentID)) {
			u.seen[one.ID] = struct{}{}
			first = append(first, one.ID)
		}
	}
	return first
}

// use notes that tokens and agents were used today. It writes once a day for each of them. An error
// is ignored, because the note is for reviews only and must not end a request.
func (t *Tokens) use(ctx context.Context, credentials []caller.Credential) {
	day := t.now().UTC().Truncate(24 * time.Hour).Unix()
	first := t.uses.add(day, credentials)
	if len(first) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx) // the next request does not write again
	_ = t.db.Update(ctx, func(tx database.Tx) error {
		for _, id := range first {
			if _, err := tx.ExecContext(ctx, `INSERT INTO credential_use VALUES (?, ?)
				ON CONFLICT (id) DO UPDATE SET day = excluded.day`, id, day); err != nil {
				return err
			}
		}
		return nil
	})
}

// Used returns the days (UTC) on which tokens and agents were last used, by their IDs.
func (t *Tokens) Used(ctx context.Context) (map[string]time.Time, error) {
	used := map[string]time.Time{}
	err := t.db.Query(ctx, func(tx database.Tx) error {
		clear(used)
		var id string
		var day int64
		return database.ScanRows(ctx, tx, `SELECT id, day FROM credential_use`, nil, []any{&id, &day}, func() error {
			used[id] = time.Unix(day, 0).UTC()
			return nil
		})
	})
	return used, err
}
