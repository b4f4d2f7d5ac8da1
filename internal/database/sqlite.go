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
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// readers is how many views one process can have open on a SQLite file; others wait.
const readers = 4

// sqlite is a SQLite file. Updates of one process that wait at the same time share one commit; if one of them fails,
// only that one is undone.
type sqlite struct {
	path   string
	write  *sql.DB // one connection
	read   *sql.DB
	views  chan *connection // those that no view uses; nil for one that is not connected
	closed atomic.Bool
	writer *writer
}

var _ engine = (*sqlite)(nil)

// Open opens the SQLite database at path, creating it with mode 0600 if needed, and migrates it to the
// newest of the versions. Each version is the SQL that migrates from the previous one; a later
// release may only append to the list. Commits are on stable storage (write-ahead log,
// synchronous=FULL).
func Open(ctx context.Context, path string, versions ...string) (*DB, error) {
	s := &sqlite{path: path, views: make(chan *connection, readers)}
	for range readers {
		s.views <- nil
	}
	if err := s.open(ctx, versions); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the database %q: %w", path, err), s.closeFiles())
	}
	s.writer = startWriter(s.write)
	return &DB{engine: s}, nil
}

func (s *sqlite) open(ctx context.Context, versions []string) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	// SQLite gives its other files the mode of this one.
	file, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(checkMode(file), file.Close()); err != nil {
		return err
	}
	if s.write, err = sql.Open("sqlite", dsn(s.path, "immediate")); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if s.read, err = sql.Open("sqlite", dsn(s.path, "deferred", "query_only(ON)")); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	return whileBusy(ctx, func() error { return migrate(ctx, s.write, versions) })
}

// whileBusy calls f again while SQLite says that the file is busy, for transactionTimeout. SQLite itself does not wait
// while another process changes the file to a write-ahead log, or removes that log when it is the last to close it
// (https://www.sqlite.org/wal.html, section 8).
func whileBusy(ctx context.Context, f func() error) error {
	const pause = 5 * time.Millisecond
	for end := time.Now().Add(transactionTimeout); ; {
		err := f()
		if busy := (*driver.Error)(nil); !errors.As(err, &busy) || busy.Code()&0xff != sqlite3.SQLITE_BUSY ||
			time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
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

func dsn(path, lock string, pragmas ...string) string {
	values := url.Values{
		"_txlock": {lock},
		"_pragma": append([]string{
			fmt.Sprintf("busy_timeout(%d)", transactionTimeout.Milliseconds()),
			"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)", "trusted_schema(OFF)",
			"temp_store(MEMORY)",
		}, pragmas...),
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
	missing, err := missing(version, versions)
	if err != nil || len(missing) == 0 {
		return err
	}
	for _, statements := range missing {
		if _, err := tx.ExecContext(ctx, forSQLite(statements)); err != nil {
			return fmt.Errorf("making its tables: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(versions))); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *sqlite) view(ctx context.Context, f func(Tx) error) error {
	c, err := s.reader(ctx)
	if err != nil {
		return fmt.Errorf("reading the database %q: %w", s.path, err)
	}
	defer s.leave(c)
	if err := c.exec("BEGIN"); err != nil {
		return fmt.Errorf("reading the database %q: %w", s.path, err)
	}
	return f(c)
}

func (s *sqlite) query(ctx context.Context, f func(Tx) error) error { return s.view(ctx, f) }

// reader returns a connection that no other view uses. It waits for one if all are used.
func (s *sqlite) reader(ctx context.Context) (*connection, error) {
	var c *connection
	select {
	case c = <-s.views:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c != nil {
		return c, nil
	}
	c, err := connect(context.WithoutCancel(ctx), s.read)
	if err != nil {
		s.views <- nil
		return nil, err
	}
	c.reads = true
	return c, nil
}

// leave ends a view. The connection is kept for others.
func (s *sqlite) leave(c *connection) {
	if err := c.exec("ROLLBACK"); err != nil {
		_ = c.close() // nothing depends on it
		c = nil
	}
	s.views <- c
	if s.closed.Load() {
		s.closeViews()
	}
}

// closeViews closes the connections that no view uses.
func (s *sqlite) closeViews() {
	for range readers {
		select {
		case c := <-s.views:
			if c != nil {
				_ = c.close() // nothing depends on it
			}
			s.views <- nil
		default:
		}
	}
}

func (s *sqlite) update(ctx context.Context, f func(Tx) error) error { return s.writer.do(ctx, f) }

func (s *sqlite) close() error {
	s.writer.close()
	return s.closeFiles()
}

func (s *sqlite) closeFiles() error {
	s.closed.Store(true)
	s.closeViews()
	var errs []error
	for _, db := range []*sql.DB{s.write, s.read} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
