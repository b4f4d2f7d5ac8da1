// Package taint keeps the servers that each conversation of a host has read, in the state database.
// Policies decide on them (context.session.servers), so they outlive the process and the connection.
package taint

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/procfs"
)

// Schema creates the table of the store.
const Schema = `
CREATE TABLE taint (
	lineage TEXT NOT NULL,
	server  TEXT NOT NULL,
	account TEXT NOT NULL,
	used    INTEGER NOT NULL, -- seconds since 1970
	PRIMARY KEY (lineage, server)
) STRICT, WITHOUT ROWID;
CREATE INDEX taint_account ON taint (account, lineage);`

const (
	// MaxLineages is the maximum number of conversations (caller.Caller.Lineage) of one account that have rows.
	// They are never evicted: while an account is at the limit, Servers returns ErrFull for its other conversations.
	MaxLineages = 1_000
	// Keep is how long the rows of a conversation are kept after its last run. The rows of a host
	// process of this machine are kept exactly as long as the process.
	Keep = 24 * time.Hour
	// refresh is the age from which Servers renews the time of the last use.
	refresh = time.Hour
)

// Errors of Servers.
var (
	ErrUnknown = errors.New("the conversation of the host cannot be identified")
	ErrFull    = fmt.Errorf(
		"this account has reached its limit of %d conversations: one is removed %v after its last run",
		MaxLineages, Keep)
)

// Store keeps the servers that each conversation has read. Its methods are safe for concurrent use, also by several
// processes.
type Store struct {
	open func(context.Context) (*database.DB, error)
	now  func() time.Time
}

// New returns a store in the database that open returns. open is called for each operation. now may
// be nil.
func New(open func(context.Context) (*database.DB, error), now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{open: open, now: now}
}

// Servers returns the servers that the caller's conversation has read. After an error, it must be
// assumed that the conversation has read every server.
func (s *Store) Servers(ctx context.Context, who caller.Caller) ([]string, error) {
	if who.Lineage == caller.UnknownLineage {
		return nil, ErrUnknown
	}
	db, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	servers, used, err := s.read(ctx, db, who)
	if errors.Is(err, ErrFull) {
		if err := s.prune(ctx, db, who.Account()); err != nil {
			return nil, err
		}
		servers, used, err = s.read(ctx, db, who)
	}
	if err != nil || len(servers) == 0 || s.now().Sub(used) < refresh {
		return servers, err
	}
	return servers, db.Exec(ctx, `UPDATE taint SET used = ? WHERE lineage = ?`, s.now().Unix(), who.Lineage)
}

// read returns the rows of a conversation and the time of its last use.
func (s *Store) read(ctx context.Context, db *database.DB, who caller.Caller) (servers []string, used time.Time,
	err error) {
	err = db.View(ctx, func(tx database.Tx) error {
		servers = nil
		var server string
		var at int64
		err := database.ScanRows(ctx, tx, `SELECT server, used FROM taint WHERE lineage = ?`, []any{who.Lineage},
			[]any{&server, &at}, func() error {
				servers, used = append(servers, server), time.Unix(at, 0)
				return nil
			})
		if err != nil || len(servers) > 0 {
			return err
		}
		var n int
		err = tx.QueryRowContext(ctx, `SELECT count(DISTINCT lineage) FROM taint WHERE account = ?`,
			who.Account()).Scan(&n)
		if err == nil && n >= MaxLineages {
			return ErrFull
		}
		return err
	})
	if err == nil && len(servers) > 0 && s.over(db, who.Lineage, used) {
		servers = nil
	}
	return servers, used, err
}

// Add records durably that the caller's conversation reads a server.
func (s *Store) Add(ctx context.Context, who caller.Caller, server string) error {
	db, err := s.open(ctx)
	if err != nil {
		return err
	}
	return db.Exec(ctx, `INSERT INTO taint VALUES (?, ?, ?, ?)
		ON CONFLICT (lineage, server) DO UPDATE SET used = excluded.used`,
		who.Lineage, server, who.Account(), s.now().Unix())
}

// prune removes the rows of an account's conversations that are over.
func (s *Store) prune(ctx context.Context, db *database.DB, account string) error {
	return db.Update(ctx, func(tx database.Tx) error {
		var over []string
		var lineage string
		var used int64
		err := database.ScanRows(ctx, tx, `SELECT lineage, max(used) FROM taint WHERE account = ? GROUP BY lineage`,
			[]any{account}, []any{&lineage, &used}, func() error {
				if s.over(db, lineage, time.Unix(used, 0)) {
					over = append(over, lineage)
				}
				return nil
			})
		if err != nil {
			return err
		}
		for _, lineage := range over {
			if _, err := tx.ExecContext(ctx, `DELETE FROM taint WHERE lineage = ?`, lineage); err != nil {
				return err
			}
		}
		return nil
	})
}

// over reports whether a conversation that was last used at a time is over. In a shared database, the name of another
// boot may be that of another machine.
func (s *Store) over(db *database.DB, lineage string, used time.Time) bool {
	if name, isProcess := strings.CutPrefix(lineage, caller.ProcessLineage); isProcess {
		if lives, known := procfs.Lives(name); known && (procfs.IsOfThisBoot(name) || !db.IsShared()) {
			return !lives
		}
	}
	return s.now().Sub(used) > Keep
}
