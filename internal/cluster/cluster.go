// Package cluster keeps the nodes of a cluster in its database: their names, epochs and leases. A node is one process
// of `airlock serve`. All times are of the clock of the database, so that the clocks of the nodes may differ.
package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
)

// Schema makes the tables of a cluster.
const Schema = `
CREATE TABLE cluster_setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE node (
	name      TEXT PRIMARY KEY,
	epoch     INTEGER NOT NULL, -- increases with each start
	id        TEXT NOT NULL UNIQUE, -- name/epoch
	version   TEXT NOT NULL,
	started   INTEGER NOT NULL, -- seconds since 1970
	heartbeat INTEGER NOT NULL  -- seconds since 1970; 0: it has ended
) STRICT;`

// SchemaAddresses adds how nodes reach each other.
const SchemaAddresses = `
-- The address has a host and a port, or is empty if others do not reach the node. The pin is that of its certificate.
ALTER TABLE node ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE node ADD COLUMN pin TEXT NOT NULL DEFAULT '';`

const (
	// heartbeatInterval is how often a node renews its lease, and silentAfter when a node without a heartbeat counts
	// as dead: a process with its name can replace it.
	heartbeatInterval = 2500 * time.Millisecond
	silentAfter       = 10 * time.Second
	// longestStop is how long a process may be stopped without losing its lease: not as long as silentAfter, of which a
	// part has passed when it is stopped.
	longestStop = 5 * time.Second
	// Lease is how long a node acts after its last heartbeat.
	Lease = 30 * time.Second
	// Live is the condition for this in SQL.
	Live = "node.heartbeat > unixepoch() - 30"
)

// SetupError is an error that the operator of a cluster can correct.
type SetupError struct{ text, hint string }

// Error returns the text.
func (e *SetupError) Error() string { return e.text }

// Hint returns what to do.
func (e *SetupError) Hint() string { return e.hint }

// Key is the key of the cluster. The database knows only its public part.
type Key interface {
	// Has reports whether the key decrypts what is encrypted to a recipient.
	Has(recipient string) bool
}

// CheckKey returns an error if the key is not that of the cluster. The first process of a cluster determines the key.
func CheckKey(ctx context.Context, db *database.DB, key Key, recipient string) error {
	return db.Update(ctx, func(tx database.Tx) error {
		var known string
		err := tx.QueryRowContext(ctx, "SELECT value FROM cluster_setting WHERE name = 'recipient'").Scan(&known)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = tx.ExecContext(ctx, "INSERT INTO cluster_setting VALUES ('recipient', ?)", recipient)
			return err
		case err == nil && !key.Has(known):
			return &SetupError{"the key of this machine is not the key of the cluster",
				"copy the file of cluster.key from another node; each cluster needs its own database"}
		}
		return err
	})
}

// SetKey makes a recipient the key of the cluster. Everything that is stored must be encrypted to it.
func SetKey(ctx context.Context, db *database.DB, recipient string) error {
	return db.Exec(ctx, "UPDATE cluster_setting SET value = ? WHERE name = 'recipient'", recipient)
}

// The states of a node.
const (
	Alive   = "alive"
	Leaving = "leaving" // it is ending, and begins nothing
	Silent  = "silent"  // it has not renewed its lease for a while: it has died, or does not reach the database
	Ended   = "ended"
)

// Member is a node as others see it.
type Member struct {
	Name      string    `json:"name"`
	Epoch     int64     `json:"epoch"`
	State     string    `json:"state"`
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	Load      Load      `json:"load"`
}

// List returns the nodes that the cluster has had, by name.
func List(ctx context.Context, db *database.DB) ([]Member, error) {
	return database.Rows(ctx, db, "SELECT name, epoch, version, started, heartbeat, unixepoch(), busy, sandboxes, "+
		"leaving = 1 FROM node ORDER BY name", nil, func(rows *sql.Rows) (m Member, err error) {
		var started, heartbeat, now int64
		var leaving bool
		err = rows.Scan(&m.Name, &m.Epoch, &m.Version, &started, &heartbeat, &now, &m.Load.Busy, &m.Load.Sandboxes,
			&leaving)
		m.State, m.Started = Alive, time.Unix(started, 0).UTC()
		switch {
		case heartbeat == 0:
			m.State = Ended
		case now-heartbeat >= seconds(silentAfter):
			m.State = Silent
		case leaving:
			m.State = Leaving
		}
		if heartbeat != 0 {
			m.Heartbeat = time.Unix(heartbeat, 0).UTC()
		}
		return m, err
	})
}

// Lives reports whether a node with an ID may still act.
func Lives(ctx context.Context, tx database.Tx, id string) (lives bool, err error) {
	err = tx.QueryRowContext(ctx, "SELECT count(*) > 0 FROM node WHERE id = ? AND "+Live, id).Scan(&lives)
	return lives, err
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// maxName is the maximum length of the name of a node in bytes.
const maxName = 63

// CheckName returns an error if a text is not the name of a node.
func CheckName(name string) error {
	valid := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r)
	}
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return !valid(r) }) {
		return fmt.Errorf("%q is not the name of a node: use 1 to %d letters, digits, dots, - and _", name, maxName)
	}
	return nil
}
