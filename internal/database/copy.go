package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// Copy writes one consistent state of the database at path to the new file to. Processes that use
// the database continue to read and write it meanwhile.
func Copy(ctx context.Context, path, to string) error {
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // SQLite fills an empty file
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return with(path, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "VACUUM INTO ?", to)
		return err
	})
}

// Check returns an error if the structure of the database at path is damaged.
func Check(ctx context.Context, path string) error {
	return with(path, func(db *sql.DB) error {
		var result string
		if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&result); err != nil {
			return err
		}
		if result != "ok" {
			return errors.New(result)
		}
		return nil
	})
}

func with(path string, do func(*sql.DB) error) error {
	db, err := sql.Open("sqlite", dsn(path, "deferred"))
	if err != nil {
		return fmt.Errorf("opening the database %q: %w", path, err)
	}
	if err := errors.Join(do(db), db.Close()); err != nil {
		return fmt.Errorf("the database %q: %w", path, err)
	}
	return nil
}
