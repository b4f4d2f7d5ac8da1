package database

import (
	"context"
	"database/sql"
	"strings"
)

// maxRemembered is how many values a Memo keeps.
const maxRemembered = 4096

// Memo keeps what the updates of one process read, decoded, so that later updates need not read and
// decode it again. Everything in it is as it is in the database, because it is emptied
//
//   - if another process or connection has changed the database,
//   - by every statement that may change a row, except those of ExecKeeping and Later,
//   - if an update fails.
//
// A nil Memo keeps nothing. It must only be used by the function that Update runs.
type Memo struct {
	values map[any]any
}

// MemoOf returns the Memo of an update, or nil in a view.
func MemoOf(tx Tx) *Memo {
	if c, ok := tx.(*connection); ok && !c.reads {
		return &c.memo
	}
	return nil
}

// Get returns the value that was put at a key, or nil.
func (m *Memo) Get(key any) any {
	if m == nil {
		return nil
	}
	return m.values[key]
}

// Put keeps a value that the caller has just read from the database or written to it. The caller
// must not change it any more.
func (m *Memo) Put(key, value any) {
	if m == nil {
		return
	}
	if m.values == nil || len(m.values) >= maxRemembered {
		m.values = map[any]any{}
	}
	m.values[key] = value
}

func (m *Memo) clear() { m.values = nil }

// ExecKeeping executes a statement that changes rows, without clearing the Memo. The caller must Put
// the new values of all changed rows that the Memo has.
func ExecKeeping(ctx context.Context, tx Tx, query string, args ...any) (sql.Result, error) {
	if c, ok := tx.(*connection); ok {
		if err := c.ready(); err != nil {
			return nil, err
		}
		return c.execute(query, args)
	}
	return tx.ExecContext(ctx, query, args...)
}

// onlyReads reports whether a query changes no row.
func onlyReads(query string) bool {
	return strings.HasPrefix(strings.TrimLeft(query, " \t\n"), "SELECT ")
}

// compareVersion empties the Memo if another connection has changed the database. It is called in
// each transaction.
func (c *connection) compareVersion() error {
	s, err := c.statement("PRAGMA data_version")
	if err != nil {
		return err
	}
	var version int64
	if err := s.QueryRowContext(context.Background()).Scan(&version); err != nil {
		return err
	}
	if version != c.version {
		c.memo.clear()
		c.version = version
	}
	return nil
}
