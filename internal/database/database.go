// Package database opens the tables of Airlock's state, which several processes share and which a power failure must
// not undo: in a SQLite file, or in PostgreSQL. It is the only importer of both drivers.
//
// Each SQL statement is written once and executed by both databases. sqlite.go and postgresql.go open them, and
// dialect.go has everything that differs in the statements.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// transactionTimeout is how long a transaction waits for those of other processes. In PostgreSQL it bounds the whole
// transaction, with its repetitions.
const transactionTimeout = 10 * time.Second

// Tx is the transaction that is passed to a function of Update or View. The rows of a query must be closed before the
// next statement.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// DB is an open database. Its methods are safe for concurrent use.
type DB struct {
	engine engine
	shared bool
}

// engine executes transactions. Its methods are safe for concurrent use.
type engine interface {
	// view runs f in a transaction that changes nothing. f is repeated if the connection is lost.
	view(ctx context.Context, f func(Tx) error) error
	// query is DB.Query.
	query(ctx context.Context, f func(Tx) error) error
	// update is DB.Update.
	update(ctx context.Context, f func(Tx) error) error
	// close waits for updates. It may be called twice.
	close() error
}

// ErrNewer is returned for a database that a later version of Airlock wrote.
var ErrNewer = errors.New("a later version of Airlock wrote it")

// ErrUnavailable is returned if a PostgreSQL server cannot be reached.
var ErrUnavailable = errors.New("the database does not answer")

// ErrClosed is returned by updates after Close.
var ErrClosed = errors.New("the database is closed")

// View runs f on one consistent state of the database, which f cannot change. It does not wait for updates. f may be
// called again after a lost connection.
func (d *DB) View(ctx context.Context, f func(Tx) error) error { return d.engine.view(ctx, f) }

// Query is View for an f that executes one statement. PostgreSQL needs no transaction for it, which takes one message
// to the server instead of three.
func (d *DB) Query(ctx context.Context, f func(Tx) error) error { return d.engine.query(ctx, f) }

// Update runs f in a transaction and returns when it is on stable storage. On any error all changes of f are undone.
// The transactions of all processes have the effect of running one after the other. f must not keep the Tx. If ctx is
// cancelled after f has started, Update still completes.
//
// PostgreSQL may refuse a transaction because of a concurrent one. Then everything is undone and f is called again, so
// f must set all variables anew that it changes.
func (d *DB) Update(ctx context.Context, f func(Tx) error) error { return d.engine.update(ctx, f) }

// Close waits for the updates that were handed over and closes the database.
// It may be called twice.
func (d *DB) Close() error { return d.engine.close() }

// IsShared reports whether the database is in PostgreSQL, which processes of several machines use.
func (d *DB) IsShared() bool { return d.shared }

// Fenced returns the same database with updates that call check first, in their transactions. If it returns an error,
// nothing is stored.
func (d *DB) Fenced(check func(context.Context, Tx) error) *DB {
	return &DB{&fenced{d.engine, check}, d.shared}
}

type fenced struct {
	engine
	check func(context.Context, Tx) error
}

func (e *fenced) update(ctx context.Context, f func(Tx) error) error {
	return e.engine.update(ctx, func(tx Tx) error {
		if err := e.check(ctx, tx); err != nil {
			return err
		}
		return f(tx)
	})
}

// Repeating returns the same database for tests. It calls each function of View and Update twice, and undoes the
// changes of the first call, as after a refused transaction.
func (d *DB) Repeating() *DB { return &DB{repeating{d.engine}, d.shared} }

type repeating struct{ engine }

func (e repeating) view(ctx context.Context, f func(Tx) error) error {
	return e.engine.view(ctx, twice(f))
}

func (e repeating) query(ctx context.Context, f func(Tx) error) error {
	return e.engine.query(ctx, twice(f))
}

func twice(f func(Tx) error) func(Tx) error {
	return func(tx Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return f(tx)
	}
}

func (e repeating) update(ctx context.Context, f func(Tx) error) error {
	return e.engine.update(ctx, func(tx Tx) error {
		_, err := tx.ExecContext(ctx, "SAVEPOINT first")
		if err == nil {
			err = f(tx)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "ROLLBACK TO first")
		}
		if err != nil {
			return err
		}
		return f(tx)
	})
}

// missing returns the versions that a database of a version lacks. The error wraps ErrNewer.
func missing(version int, versions []string) ([]string, error) {
	if version > len(versions) {
		return nil, fmt.Errorf("version %d of its tables is newer than %d: %w", version, len(versions), ErrNewer)
	}
	return versions[version:], nil
}

// protect turns a panic of a transaction into its error: others must not wait forever because of it.
func protect(tx Tx, do func(Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(errors.New("an update of the database panicked"), fmt.Errorf("%v", p))
		}
	}()
	return do(tx)
}
