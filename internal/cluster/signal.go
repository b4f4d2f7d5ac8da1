package cluster

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"

	"github.com/airlock-mcp/airlock/internal/database"
)

const signalPrefix = "signal "

// Signal has all nodes notice that something of a name has happened, see LastSignal.
func Signal(ctx context.Context, db *database.DB, name string) error {
	value := rand.Text()
	return db.Update(ctx, func(tx database.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO cluster_setting VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET "+
			"value = excluded.value", signalPrefix+name, value)
		return err
	})
}

// LastSignal returns the value of the last signal of a name. Each signal has another one; it is empty before the first.
func LastSignal(ctx context.Context, db *database.DB, name string) (value string, err error) {
	err = db.View(ctx, func(tx database.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT value FROM cluster_setting WHERE name = ?",
			signalPrefix+name).Scan(&value)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}
