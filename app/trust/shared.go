package trust

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/database"
)

// Schema makes the table of the contents that were confirmed for all nodes of a cluster.
const Schema = `
CREATE TABLE confirmed_configuration (
	file      TEXT PRIMARY KEY, -- its path, on each node that has it there
	digest    TEXT NOT NULL, -- Content.Digest of what was confirmed last
	person    TEXT NOT NULL,
	confirmed INTEGER NOT NULL -- seconds since 1970
) STRICT;`

// Share stores that a person has confirmed a content, for all nodes of a cluster.
func Share(ctx context.Context, db *database.DB, c Content, by string) error {
	err := db.Exec(ctx, `INSERT INTO confirmed_configuration VALUES (?, ?, ?, unixepoch())
		ON CONFLICT (file) DO UPDATE SET digest = excluded.digest, person = excluded.person,
		confirmed = excluded.confirmed`, c.File, c.Digest(), by)
	if err != nil {
		return fmt.Errorf("storing the confirmation of %q in the database: %w", c.File, err)
	}
	return nil
}

// ForgetShared removes the confirmation of a file for all nodes.
func ForgetShared(ctx context.Context, db *database.DB, file string) error {
	return db.Exec(ctx, "DELETE FROM confirmed_configuration WHERE file = ?", file)
}

// Shared returns the person who has confirmed a content at any node of a cluster, if it is the one of its file that was
// confirmed last.
func Shared(ctx context.Context, db *database.DB, c Content) (by string, found bool, err error) {
	err = db.QueryRow(ctx, "SELECT person FROM confirmed_configuration WHERE file = ? AND digest = ?",
		[]any{c.File, c.Digest()}, &by)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return by, err == nil, err
}
