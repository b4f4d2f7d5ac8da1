package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/objects"
)

// Reencrypted is what ReencryptCluster has done.
type Reencrypted struct {
	Changed int `json:"changed"` // values and objects that were encrypted again
	// Unreadable is the number of objects that no identity in the file of cluster.key decrypts.
	Unreadable int `json:"unreadable,omitempty"`
}

// ReencryptCluster encrypts what the cluster has stored with the first identity in the file of cluster.key, where
// another one in it was used. Afterwards the others can be removed from the file. Nodes may serve meanwhile, if the
// identity is the first one in the files of all of them.
func ReencryptCluster(ctx context.Context, c *config.Config) (did Reencrypted, err error) {
	if c.Cluster.Database == "" {
		return did, errNoCluster()
	}
	db, key, err := openCluster(ctx, c.Cluster)
	if err != nil {
		return did, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	recipient := key.Recipient().String()
	if err := recordAct(ctx, c, "what the cluster has stored is encrypted to "+recipient); err != nil {
		return did, err
	}
	tables, err := database.Rows(ctx, db, `SELECT table_name FROM information_schema.columns
		WHERE column_name = 'sealed' AND table_schema = current_schema() ORDER BY table_name`, nil,
		database.Column[string])
	if err != nil {
		return did, err
	}
	for _, table := range tables {
		n, err := reencryptTable(ctx, db, table, key)
		if did.Changed += n; err != nil {
			return did, fmt.Errorf("encrypting the table %q again: %w", table, err)
		}
	}
	n, err := suspended.Reencrypt(ctx, db, key.Derive("node"))
	if did.Changed += n; err != nil {
		return did, fmt.Errorf("encrypting the suspended runs again: %w", err)
	}
	if err := did.objects(ctx, c.Cluster.Objects, db, key); err != nil {
		return did, fmt.Errorf("encrypting the object store again: %w", err)
	}
	return did, cluster.SetKey(ctx, db, recipient)
}

// objects encrypts the copies in the object store at an address, which may be empty. One that cannot be decrypted does
// not stop it: the others would be lost with the former key.
func (r *Reencrypted) objects(ctx context.Context, address string, db *database.DB, key *agekey.Key) error {
	if address == "" {
		return nil
	}
	store, err := objects.Open(address)
	if err != nil {
		return err
	}
	renew := func(sealed []byte) ([]byte, error) {
		renewed, err := key.Renew(sealed)
		if err != nil {
			r.Unreadable++
		}
		return renewed, nil
	}
	logs, err := clusterlog.RewriteCopies(ctx, db, store, renew)
	if r.Changed += logs; err != nil {
		return err
	}
	runs, err := copies.Rewrite(ctx, db, store, renew)
	r.Changed += runs
	return err
}

// reencryptTable encrypts the column sealed of a table. Each row has a transaction, because one has only ten seconds. A
// row that a node changes meanwhile has another place afterwards, and is encrypted with the key that the node uses.
func reencryptTable(ctx context.Context, db *database.DB, table string, key *agekey.Key) (changed int, err error) {
	places, err := database.Rows(ctx, db, "SELECT ctid::text FROM "+table+" WHERE sealed IS NOT NULL", nil,
		database.Column[string])
	if err != nil {
		return 0, err
	}
	for _, place := range places {
		at := []any{place}
		done, err := db.Rewrite(ctx, table, "sealed", "ctid = ?::tid", at, func(sealed []byte) ([]byte, error) {
			if sealed == nil {
				return nil, nil
			}
			return key.Renew(sealed)
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
