// Package database opens SQLite files for state that several processes share and
// that a power failure must not undo. It is the only importer of the driver.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver of that name
)

// busyTimeout is how long a transaction waits for another process's.
const busyTimeout = 10 * time.Second

// readers is how many views one process can have open; others wait.
const readers = 4

// Tx is the transaction that is passed to a function of Update or View.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// DB is an open database. Its methods are safe for concurrent use.
type DB struct {
	path   string
	write  *sql.DB // one connection
	read   *sql.DB
	writer *writer
}

// ErrNewer is returned for a file that a later version of Airlock wrote.
var ErrNewer = errors.New("a later version of Airlock wrote it")

// ErrClosed is returned by updates after Close.
var ErrClosed = errors.New("the database is closed")

// Open opens the database at path, creating it with mode 0600 if needed, and migrates it to the
// newest of the versions. Each version is the SQL that migrates from the previous one; a later
// release may only append to the list. Commits are on stable storage (write-ahead log,
// synchronous=FULL).
func Open(ctx context.Context, path string, versions ...string) (*DB, error) {
	d := &DB{path: path}
	if err := d.open(ctx, versions); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the database %q: %w", path, err), d.closeFiles())
	}
	d.writer = startWriter(d.write)
	return d, nil
}

func (d *DB) open(ctx context.Context, versions []string) error {
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		return err
	}
	// SQLite gives its other files the mode of this one.
	file, err := os.OpenFile(d.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(checkMode(file), file.Close()); err != nil {
		return err
	}
	if d.write, err = sql.Open("sqlite", dsn(d.path, "immediate")); err != nil {
		return err
	}
	d.write.SetMaxOpenConns(1)
	if d.read, err = sql.Open("sqlite", dsn(d.path, "deferred")); err != nil {
		return err
	}
	d.read.SetMaxOpenConns(readers)
	return migrate(ctx, d.write, versions)
}

func checkMode(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeType != 0 {
		return errors.New("it is not a regular file")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others can read or write it (mode %04o): chmod 600 it", info.Mode().Perm())
	}
	return nil
}

func dsn(path, lock string) string {
	values := url.Values{
		"_txlock": {lock},
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
			"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)", "trusted_schema(OFF)",
			"temp_store(MEMORY)",
		},
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: values.Encode()}).String()
}

func migrate(ctx context.Context, db *sql.DB, versions []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit there is nothing to undo
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(versions) {
		return fmt.Errorf("version %d of its tables is newer than %d: %w", version, len(versions), ErrNewer)
	}
	if version == len(versions) {
		return nil
	}
	for _, statements := range versions[version:] {
		if _, err := tx.ExecContext(ctx, statements); err != nil {
			return fmt.Errorf("making its tables: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(versions))); err != nil {
		return err
	}
	return tx.Commit()
}

// View runs f on one consistent state of the database, which f cannot change.
// It does not wait for updates.
func (d *DB) View(ctx context.Context, f func(Tx) error) error {
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("reading the database %q: %w", d.path, err)
	}
	defer tx.Rollback() // a view changes nothing
	return f(tx)
}

// Update runs f in a transaction and returns when it is on stable storage. Updates of one process
// run one after the other. Those that wait at the same time share one commit; if one of them fails,
// only that one is undone. On any error all changes of f are undone. f must not keep the Tx. If ctx
// is cancelled after f has started, Update still completes.
func (d *DB) Update(ctx context.Context, f func(Tx) error) error {
	return d.writer.do(ctx, f)
}

// Close waits for the updates that were handed over and closes the file.
// It may be called twice.
func (d *DB) Close() error {
	d.writer.close()
	return d.closeFiles()
}

func (d *DB) closeFiles() error {
	var errs []error
	for _, db := range []*sql.DB{d.write, d.read} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
