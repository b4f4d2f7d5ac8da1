package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// maxStatements is how many statements one connection keeps compiled. Programs have fewer.
const maxStatements = 256

// connection is the connection of the writer, or of one view at a time. It compiles each statement once, which takes
// longer than to execute it. It is not safe for concurrent use.
type connection struct {
	conn    *sql.Conn
	known   map[string]*sql.Stmt
	reads   bool       // of views, which end with their context
	late    lateWrites // of the transaction of the writer
	memo    Memo
	version int64 // of the database that the memo belongs to, as PRAGMA data_version
}

var _ Tx = (*connection)(nil)

func connect(ctx context.Context, db *sql.DB) (*connection, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{conn: conn, known: map[string]*sql.Stmt{}}, nil
}

func (c *connection) statement(query string) (*sql.Stmt, error) {
	if known := c.known[query]; known != nil {
		return known, nil
	}
	if len(c.known) >= maxStatements {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	made, err := c.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	c.known[query] = made
	return made, nil
}

// forget closes all statements.
func (c *connection) forget() error {
	var errs []error
	for query, known := range c.known {
		errs = append(errs, known.Close())
		delete(c.known, query)
	}
	return errors.Join(errs...)
}

func (c *connection) close() error { return errors.Join(c.forget(), c.conn.Close()) }

// context returns the context of a statement. Updates ignore it: one that has begun is not interrupted, and watching
// a context costs more than most statements.
func (c *connection) context(ctx context.Context) context.Context {
	if c.reads {
		return ctx
	}
	return context.Background()
}

// ExecContext executes a statement.
func (c *connection) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	c.memo.clear()
	if err := c.ready(); err != nil {
		return nil, err
	}
	return c.execute(query, args)
}

func (c *connection) execute(query string, args []any) (sql.Result, error) {
	s, err := c.statement(query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), args...)
}

// QueryContext returns the rows of a statement, which the caller must close before it uses the same statement again.
func (c *connection) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if !onlyReads(query) {
		c.memo.clear()
	}
	if err := c.ready(); err != nil {
		return nil, err
	}
	s, err := c.statement(query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(c.context(ctx), args...)
}

// QueryRowContext returns one row of a statement.
func (c *connection) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if !onlyReads(query) {
		c.memo.clear()
	}
	if c.ready() != nil {
		ended, end := context.WithCancel(ctx)
		end()
		return c.conn.QueryRowContext(ended, query, args...) // its Scan returns an error
	}
	s, err := c.statement(query)
	if err != nil {
		return c.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...) // its Scan returns the error
	}
	return s.QueryRowContext(c.context(ctx), args...)
}

func (c *connection) exec(statement string) error {
	_, err := c.execute(statement, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
