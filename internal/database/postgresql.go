package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/secret"
)

const (
	// connections is how many connections one process opens to a PostgreSQL database; other transactions wait.
	connections = 16
	// idleTime is how long an unused connection stays open.
	idleTime = 5 * time.Minute
	// firstPause and longestPause bound the random pause before a transaction is repeated. It doubles each time.
	firstPause, longestPause = 2 * time.Millisecond, 200 * time.Millisecond
	// outage is how long transactions are repeated while the server cannot be reached. Then they fail at once.
	outage = 3 * time.Second
	// optimistic is how many times a transaction is tried beside others. After that it locks out those that were
	// refused as well, so that each of them ends.
	optimistic = 3
)

// versionTable has a row for each set of tables. Transactions that were refused several times lock it.
const versionTable = `CREATE TABLE IF NOT EXISTS airlock_version (name TEXT PRIMARY KEY, version INTEGER NOT NULL)`

// postgreSQL is a set of tables in PostgreSQL, in the first schema of the search path. Transactions are serializable.
type postgreSQL struct {
	name string // for messages
	pool *sql.DB

	failing atomic.Int64 // since when the server cannot be reached, as UnixNano; 0: it can be reached

	updates sync.RWMutex // held for reading during an update; guards closed
	closed  bool
}

var _ engine = (*postgreSQL)(nil)

// OpenPostgreSQL opens the set of tables of a name in PostgreSQL 14 or newer, and migrates it to the newest of the
// versions, see Open. url has the form postgres://USER:PASSWORD@HOST/DATABASE and may have any parameter of libpq. If
// it has several hosts, the one that accepts writes is used. An error in the setup has a hint.
func OpenPostgreSQL(ctx context.Context, url secret.Value, tables string, versions ...string) (*DB, error) {
	config, err := pgx.ParseConfig(url.Reveal())
	if err != nil { // it may contain the password
		return nil, &setupError{"the URL of the database is not one of PostgreSQL",
			"write postgres://USER@HOST/DATABASE", nil}
	}
	configure(config)
	p := &postgreSQL{name: fmt.Sprintf("%s at %s", config.Database, config.Host), pool: stdlib.OpenDB(*config)}
	p.pool.SetMaxOpenConns(connections)
	p.pool.SetMaxIdleConns(connections)
	p.pool.SetConnMaxIdleTime(idleTime)
	if err := p.migrate(ctx, tables, versions); err != nil {
		err = fmt.Errorf("opening the database %s: %w", p.name, advise(err, config))
		return nil, errors.Join(err, p.pool.Close())
	}
	return &DB{p, true}, nil
}

// configure sets the parameters that the URL does not have, and the way connections are made.
func configure(config *pgx.ConnConfig) {
	config.DialFunc = reach.Configured().DialContext
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.ValidateConnect = acceptsWrites
	// It is the limit for each host. A host that gives no answer must leave time for the others.
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, transactionTimeout/time.Duration(2+len(config.Fallbacks)))
	limit := strconv.FormatInt(transactionTimeout.Milliseconds(), 10)
	for name, value := range map[string]string{
		// A process that is stopped must not hold its locks.
		"idle_in_transaction_session_timeout": limit, "statement_timeout": limit, "application_name": "airlock",
	} {
		config.RuntimeParams[name] = cmp.Or(config.RuntimeParams[name], value)
	}
}

var errStandby = errors.New("it is a standby, which cannot be written")

func acceptsWrites(ctx context.Context, conn *pgconn.PgConn) error {
	result := conn.ExecParams(ctx, "SHOW transaction_read_only", nil, nil, nil, nil).Read()
	if result.Err == nil && len(result.Rows) == 1 && string(result.Rows[0][0]) != "off" {
		return errStandby
	}
	return result.Err
}

// migrate makes the tables of the versions that the database lacks. Other processes wait meanwhile.
func (p *postgreSQL) migrate(ctx context.Context, tables string, versions []string) error {
	tx, err := p.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit there is nothing to undo
	if err := checkServer(ctx, tx); err != nil {
		return err
	}
	var version int
	for _, statement := range []string{"SET LOCAL statement_timeout = 0",
		"SELECT pg_advisory_xact_lock(hashtext('airlock'))", forPostgreSQL(versionTable)} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	err = tx.QueryRowContext(ctx, "SELECT version FROM airlock_version WHERE name = $1", tables).Scan(&version)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	missing, err := missing(version, versions)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		if _, err := tx.ExecContext(ctx, compatibility); err != nil {
			return err
		}
	}
	for _, statements := range missing {
		if _, err := tx.ExecContext(ctx, forPostgreSQL(statements)); err != nil {
			return fmt.Errorf("making its tables: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO airlock_version VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET version = excluded.version`, tables, len(versions)); err != nil {
		return err
	}
	return tx.Commit()
}

func checkServer(ctx context.Context, tx *sql.Tx) error {
	var version int
	var encoding, schema string
	err := tx.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int,
		current_setting('server_encoding'), coalesce(current_schema(), '')`).Scan(&version, &encoding, &schema)
	switch {
	case err != nil:
		return err
	case version < oldest:
		return &setupError{fmt.Sprintf("it is PostgreSQL %d", version/10_000), "use PostgreSQL 14 or newer", nil}
	case encoding != "UTF8":
		return &setupError{"its encoding is " + encoding, "make one with the encoding UTF8: " +
			"createdb --encoding UTF8 --template template0 NAME", nil}
	case schema == "":
		return &setupError{"no schema of its search_path can be used",
			"CREATE SCHEMA, GRANT USAGE, or correct search_path", nil}
	}
	return nil
}

func (p *postgreSQL) view(ctx context.Context, f func(Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	options := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	return p.repeat(ctx, func(int) (bool, error) { return p.attempt(ctx, ctx, options, f) })
}

func (p *postgreSQL) query(ctx context.Context, f func(Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	return p.repeat(ctx, func(int) (again bool, err error) {
		conn, err := p.pool.Conn(ctx)
		if err != nil {
			return ctx.Err() == nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		defer conn.Close()
		switch err = protect(&serverTx{conn, func() context.Context { return ctx }}, f); {
		case err == nil:
			p.failing.Store(0)
			return false, nil
		case isEnded(err) || isLost(conn):
			return true, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return isRefused(err), err
	})
}

func (p *postgreSQL) update(ctx context.Context, f func(Tx) error) error {
	p.updates.RLock()
	defer p.updates.RUnlock()
	if p.closed {
		return ErrClosed
	}
	connecting, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	ctx, cancelAll := context.WithTimeout(context.WithoutCancel(ctx), transactionTimeout)
	defer cancelAll()
	options := &sql.TxOptions{Isolation: sql.LevelSerializable}
	return p.repeat(connecting, func(n int) (bool, error) {
		return p.attempt(connecting, ctx, options, func(tx Tx) error {
			if n >= optimistic {
				// This does not determine the state that the transaction sees, unlike a SELECT of an advisory lock.
				if _, err := tx.ExecContext(ctx, "LOCK TABLE airlock_version IN EXCLUSIVE MODE"); err != nil {
					return err
				}
			}
			return f(tx)
		})
	})
}

// repeat calls attempt with the number of the attempt until it reports that another one is useless, or ctx ends.
func (p *postgreSQL) repeat(ctx context.Context, attempt func(n int) (again bool, err error)) error {
	pause := firstPause
	for n := 0; ; n++ {
		again, err := attempt(n)
		if short := explain(err); short != nil {
			err = fmt.Errorf("the database %s: %w", p.name, short)
		}
		if !again || errors.Is(err, ErrUnavailable) && p.isOut() {
			return err
		}
		timer := time.NewTimer(rand.N(pause))
		pause = min(2*pause, longestPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waiting for the database %s: %w", p.name, err)
		}
	}
}

// isOut notes that the server cannot be reached, and reports whether this is so for longer than outage.
func (p *postgreSQL) isOut() bool {
	now := time.Now().UnixNano()
	p.failing.CompareAndSwap(0, now)
	since := p.failing.Load()
	return since != 0 && now-since > int64(outage)
}

// attempt runs f in a transaction. again reports whether nothing was committed and another attempt may succeed.
// connecting bounds the wait for a connection.
func (p *postgreSQL) attempt(connecting, ctx context.Context, options *sql.TxOptions, f func(Tx) error) (
	again bool, err error) {
	conn, err := p.pool.Conn(connecting)
	if err != nil {
		return connecting.Err() == nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, options)
	if err != nil {
		return isLost(conn), fmt.Errorf("%w: beginning a transaction: %w", ErrUnavailable, err)
	}
	p.failing.Store(0)
	if err := protect(&serverTx{tx, func() context.Context { return ctx }}, f); err != nil {
		again := isRefused(err) || isEnded(err) || isLost(conn)
		_ = tx.Rollback() // a lost connection is rolled back by the server
		return again, err
	}
	if err := tx.Commit(); err != nil {
		// Without an answer it is not known whether it was committed, so it is not repeated. A server that shuts down
		// gives no answer, and may report its end after the commit. A view has nothing to commit.
		again := isRefused(err) || options.ReadOnly && (isEnded(err) || isLost(conn))
		return again, fmt.Errorf("committing: %w", err)
	}
	return false, nil
}

// isRefused reports whether PostgreSQL has undone a transaction because of a concurrent one: a serialization failure or
// a deadlock.
func isRefused(err error) bool {
	state := code(err)
	return state == "40001" || state == "40P01"
}

// isEnded reports whether the server or the connection shuts down, or the server still starts.
func isEnded(err error) bool {
	state := code(err)
	return state == "57P01" || state == "57P02" || state == "57P03"
}

// code returns the SQLSTATE of an error of PostgreSQL, or an empty string.
func code(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return ""
}

func isLost(conn *sql.Conn) bool {
	closed := false
	err := conn.Raw(func(c any) error {
		closed = c.(*stdlib.Conn).Conn().IsClosed()
		return nil
	})
	return closed || err != nil
}

func (p *postgreSQL) close() error {
	p.updates.Lock()
	defer p.updates.Unlock()
	p.closed = true
	return p.pool.Close()
}

// serverTx is a transaction of PostgreSQL, or a connection without one. Like connection, it ignores the context of a
// statement: a context that ends would end the connection. Its statements end with the transaction.
type serverTx struct {
	tx    Tx
	until func() context.Context // returns the context of the transaction
}

var _ Tx = (*serverTx)(nil)

// ExecContext executes a statement.
func (t *serverTx) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	return t.tx.ExecContext(t.until(), numbered(query), args...)
}

// QueryContext returns the rows of a statement.
func (t *serverTx) QueryContext(_ context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(t.until(), numbered(query), args...)
}

// QueryRowContext returns one row of a statement.
func (t *serverTx) QueryRowContext(_ context.Context, query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(t.until(), numbered(query), args...)
}
