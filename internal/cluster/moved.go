package cluster

import (
	"context"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
)

// SchemaMoves makes the table of runs that have moved to another node than the one that made their IDs.
const SchemaMoves = `
CREATE TABLE moved_run (
	id     TEXT PRIMARY KEY,
	node   TEXT NOT NULL,   -- the name of the node that has the run
	former TEXT NOT NULL,   -- the ID of the node that had it before; empty if the key of the cluster was replaced
	moved  INTEGER NOT NULL -- seconds since 1970
) STRICT;`

const (
	runPrefix = "run_"
	// keepMoved is how long the node of a run is known, in seconds: longer than any run and its result are kept.
	keepMoved = 30 * 24 * 60 * 60
	// movedTime is how long a request for a run waits for the database. A node can answer for its own runs without it.
	movedTime = time.Second
)

// Take notes, in a transaction of this node, that a run of another process is now at this node. former is the ID of the
// node that had it.
func (n *Node) Take(ctx context.Context, tx database.Tx, run, former string) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM moved_run WHERE moved < unixepoch() - ?", keepMoved); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO moved_run VALUES (?, ?, ?, unixepoch()) ON CONFLICT (id)
		DO UPDATE SET node = excluded.node, former = excluded.former, moved = excluded.moved`, run, n.name, former)
	return err
}

// Taken returns the runs that other nodes have taken from this process.
func (n *Node) Taken(ctx context.Context) ([]string, error) {
	return database.Rows(ctx, n.db, "SELECT id FROM moved_run WHERE former = ? AND node <> ?", []any{n.ID(), n.name},
		database.Column[string])
}

// movedTo returns the name of the node that has taken a run, or "" if no node has.
func (n *Node) movedTo(ctx context.Context, id string) (name string) {
	if !strings.HasPrefix(id, runPrefix) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, movedTime)
	defer cancel()
	err := n.db.QueryRow(ctx, "SELECT node FROM moved_run WHERE id = ?", []any{id}, &name)
	if err != nil { // the run has not moved, or the database does not answer
		return ""
	}
	return name
}
