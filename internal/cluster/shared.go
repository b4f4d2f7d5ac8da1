package cluster

import (
	"context"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
)

// SchemaValues makes the table of values that nodes share.
const SchemaValues = `
CREATE TABLE node_value (
	name  TEXT PRIMARY KEY,
	node  TEXT NOT NULL,   -- the ID of the node that shares it
	value BLOB NOT NULL,   -- encrypted with the key of the cluster
	until INTEGER NOT NULL -- seconds since 1970
) STRICT;`

// Secret returns a secret for a purpose that all nodes have. It is nil without a cluster.
func (n *Node) Secret(purpose string) []byte {
	if n == nil {
		return nil
	}
	return secretOf(n.keys[0], purpose)
}

// Share lets other nodes read a value by its name, until a duration has passed, or this process ends or withdraws it.
// Without a cluster, it does nothing.
func (n *Node) Share(ctx context.Context, name string, value []byte, keep time.Duration) error {
	if n == nil {
		return nil
	}
	sealed := n.keys.seal(value, name)
	return n.db.Update(ctx, func(tx database.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM node_value WHERE until <= unixepoch()"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO node_value VALUES (?, ?, ?, unixepoch() + ?) "+
			"ON CONFLICT (name) DO UPDATE SET node = excluded.node, value = excluded.value, until = excluded.until",
			name, n.ID(), sealed, seconds(keep))
		return err
	})
}

// Shared returns a value that a node shares. Those of a node that is silent are unknown, as its IDs are.
func (n *Node) Shared(ctx context.Context, name string) ([]byte, bool) {
	if n == nil {
		return nil, false
	}
	var sealed []byte
	err := n.db.QueryRow(ctx, `SELECT value FROM node_value JOIN node ON node.id = node_value.node
		WHERE node_value.name = ? AND until > unixepoch() AND heartbeat > unixepoch() - ?`,
		[]any{name, seconds(silentAfter)}, &sealed)
	if err != nil {
		return nil, false
	}
	value, err := n.keys.open(sealed, name)
	return value, err == nil
}

// Withdraw ends the sharing of a value. It may be called twice.
func (n *Node) Withdraw(ctx context.Context, name string) error {
	if n == nil {
		return nil
	}
	return n.db.Exec(ctx, "DELETE FROM node_value WHERE name = ?", name)
}
