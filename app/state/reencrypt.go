package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
)

// ReencryptCluster encrypts what the cluster has stored with the first identity in the file of cluster.key, where
// another one in it was used, and returns the number of values. Afterwards the others can be removed from the file.
// Nodes may serve meanwhile, if the identity is the first one in the files of all of them.
func ReencryptCluster(ctx context.Context, c *config.Config) (changed int, err error) {
	if c.Cluster.Database == "" {
		return 0, errNoCluster()
	}
	db, key, err := openCluster(ctx, c.Cluster)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	recipient := key.Recipient().String()
	if err := recordAct(ctx, c, "what the cluster has stored is encrypted to "+recipient); err != nil {
		return 0, err
	}
	tables, err := database.Rows(ctx, db, `SELECT table_name FROM information_schema.columns
		WHERE column_name = 'sealed' AND table_schema = current_schema() ORDER BY table_name`, nil,
		database.Column[string])
	if err != nil {
		return 0, err
	}
	for _, table := range tables {
		n, err := reencryptTable(ctx, db, table, key)
		if changed += n; err != nil {
			return changed, fmt.Errorf("encrypting the table %q again: %w", table, err)
		}
	}
	n, err := suspended.Reencrypt(ctx, db, key.Derive("node"))
	if changed += n; err != nil {
		return changed, fmt.Errorf("encrypting the suspended runs again: %w", err)
	}
	return changed, cluster.SetKey(ctx, db, recipient)
}

// reencryptTable encrypts the column sealed of a table. Each row has a transaction, because one has only ten seconds. A
// row that a node changes meanwhile has another place afterwards, and is encrypted with the key that the node uses.
func reencryptTable(ctx context.Context, db *database.DB, table string, key *agekey.Key) (changed int, err error) {
	current, opens := agekey.OwnOf(key.Current()), agekey.OwnOf(key)
	places, err := database.Rows(ctx, db, "SELECT ctid::text FROM "+table+" WHERE sealed IS NOT NULL", nil,
		database.Column[string])
	if err != nil {
		return 0, err
	}
	for _, place := range places {
		at := []any{place}
		done, err := db.Rewrite(ctx, table, "sealed", "ctid = ?::tid", at, func(sealed []byte) ([]byte, error) {
			if _, err := agekey.Open(sealed, current); err == nil || sealed == nil {
				return nil, nil
			}
			plain, err := agekey.Open(sealed, opens)
			if err != nil {
				return nil, err
			}
			return agekey.Seal(key.Recipient(), plain)
		})
		if err != nil {
			return changed, err
		}
		if done {
			changed++
		}
	}
	return changed, nil
}
