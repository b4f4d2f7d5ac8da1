package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxGrants is the maximum number of grants of a process, or of a cluster. Beyond it, the one that ends first is
// removed.
const maxGrants = 1000

// grantStore has the grants: those of one process in memory, or those of a cluster in its database. Its methods are
// safe for concurrent use.
type grantStore interface {
	// add stores a grant, in place of one with the same key.
	add(ctx context.Context, g Grant, now time.Time) error
	// find returns the grants in force that have one of the keys; without keys, all that are in force.
	find(ctx context.Context, now time.Time, keys ...string) ([]Grant, error)
	// use counts calls that a grant has covered. It reports whether the grant is there.
	use(ctx context.Context, id string, calls int) (bool, error)
	// remove reports whether it has removed a grant.
	remove(ctx context.Context, id string) (bool, error)
}

var (
	_ grantStore = (*grantMemory)(nil)
	_ grantStore = grantRows{}
)

// grantMemory has the grants of a single machine. They are not in a file, because every process of the user could write
// them to it. The zero value is empty.
type grantMemory struct {
	mu  sync.Mutex // guards all
	all []Grant
}

func (m *grantMemory) add(_ context.Context, g Grant, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(other Grant) bool { return other.key == g.key || !now.Before(other.Until) })
	m.all = append(m.all, g)
	if len(m.all) > maxGrants {
		first := slices.MinFunc(m.all, func(a, b Grant) int { return a.Until.Compare(b.Until) })
		m.all = slices.DeleteFunc(m.all, func(other Grant) bool { return other.ID == first.ID })
	}
	return nil
}

func (m *grantMemory) find(_ context.Context, now time.Time, keys ...string) ([]Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := []Grant{}
	for _, g := range m.all {
		if now.Before(g.Until) && (len(keys) == 0 || slices.Contains(keys, g.key)) {
			found = append(found, g)
		}
	}
	return found, nil
}

func (m *grantMemory) use(_ context.Context, id string, calls int) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.all {
		if m.all[i].ID == id {
			m.all[i].Used += calls
			return true, nil
		}
	}
	return false, nil
}

func (m *grantMemory) remove(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.all)
	m.all = slices.DeleteFunc(m.all, func(g Grant) bool { return g.ID == id })
	return len(m.all) < before, nil
}

// SchemaGrants makes the table of the grants of a cluster.
const SchemaGrants = `
CREATE TABLE approval_grant (
	id        TEXT PRIMARY KEY,
	grant_key TEXT NOT NULL UNIQUE, -- of the calls that it covers
	ends      INTEGER NOT NULL, -- milliseconds since 1970
	used      INTEGER NOT NULL, -- how many calls it has covered
	content   TEXT NOT NULL -- JSON of grantContent
) STRICT;`

// grantContent is the content of a row. Grant.Used is that of the time when it was given.
type grantContent struct {
	Grant     Grant           `json:"grant"`
	Approvers []caller.Caller `json:"approvers"`
	Extent    Extent          `json:"extent"`
}

// grantRows has the grants of a cluster. A grant that was removed covers no call of any node from then on, because each
// node reads the row before each call.
type grantRows struct{ db *database.DB }

func (r grantRows) add(ctx context.Context, g Grant, now time.Time) error {
	content, err := json.Marshal(grantContent{g, g.approvers, g.extent})
	if err != nil {
		return err
	}
	return r.db.Update(ctx, func(tx database.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM approval_grant WHERE grant_key = ? OR ends <= ?`, g.key,
			now.UnixMilli()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO approval_grant VALUES (?, ?, ?, ?, ?)`, g.ID, g.key,
			g.Until.UnixMilli(), g.Used, string(content)); err != nil {
			return err
		}
		var count int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM approval_grant`).Scan(&count); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM approval_grant WHERE id IN
			(SELECT id FROM approval_grant ORDER BY ends, id LIMIT ?)`, max(0, count-maxGrants))
		return err
	})
}

func (r grantRows) find(ctx context.Context, now time.Time, keys ...string) ([]Grant, error) {
	query, args := `SELECT grant_key, used, content FROM approval_grant WHERE ends > ?`, []any{now.UnixMilli()}
	for i, key := range keys {
		query += []string{" AND grant_key IN (?", ", ?"}[min(i, 1)]
		args = append(args, key)
	}
	if len(keys) > 0 {
		query += ")"
	}
	return database.Rows(ctx, r.db, query, args, func(rows *sql.Rows) (Grant, error) {
		var key, text string
		var used int
		if err := rows.Scan(&key, &used, &text); err != nil {
			return Grant{}, err
		}
		var content grantContent
		err := strictjson.UnmarshalOpen([]byte(text), &content)
		g := content.Grant
		g.key, g.Used, g.approvers, g.extent = key, used, content.Approvers, content.Extent
		return g, err
	})
}

func (r grantRows) use(ctx context.Context, id string, calls int) (bool, error) {
	return r.db.Change(ctx, `UPDATE approval_grant SET used = used + ? WHERE id = ?`, calls, id)
}

func (r grantRows) remove(ctx context.Context, id string) (bool, error) {
	return r.db.Change(ctx, `DELETE FROM approval_grant WHERE id = ?`, id)
}
