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
	return db.Exec(ctx, "INSERT INTO cluster_setting VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET "+
		"value = excluded.value", signalPrefix+name, value)
}

// LastSignal returns the value of the last signal of a name. Each signal has another one; it is empty before the first.
func LastSignal(ctx context.Context, db *database.DB, name string) (value string, err error) {
	err = db.QueryRow(ctx, "SELECT value FROM cluster_setting WHERE name = ?", []any{signalPrefix + name}, &value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}
