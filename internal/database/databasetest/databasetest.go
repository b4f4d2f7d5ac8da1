// Package databasetest gives tests databases on both engines. The tests of a store use Open in place of database.Open:
// they run on SQLite, and test/stores runs them again on PostgreSQL.
package databasetest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Variable has the address of the PostgreSQL server on which Open opens databases, see Server.
const Variable = "AIRLOCK_TEST_POSTGRESQL"

// Open opens the database of a path: a SQLite file, or a schema in PostgreSQL, which is the same for all processes. It
// repeats each transaction, so that a test fails if the function of one cannot be called again.
func Open(ctx context.Context, path string, versions ...string) (*database.DB, error) {
	db, err := open(ctx, path, versions...)
	if err != nil {
		return nil, err
	}
	return db.Repeating(), nil
}

func open(ctx context.Context, path string, versions ...string) (*database.DB, error) {
	if IsSQLite() {
		return database.Open(ctx, path, versions...)
	}
	address, err := schema(ctx, os.Getenv(Variable), path)
	if err != nil {
		return nil, err
	}
	return database.OpenPostgreSQL(ctx, secret.New(address), "test", versions...)
}

// IsSQLite reports whether Open opens SQLite files.
func IsSQLite() bool { return os.Getenv(Variable) == "" }

// Schema returns the URL of an empty schema in PostgreSQL, for database.OpenPostgreSQL. Connections have the name of
// the schema, so that Terminate ends only those.
func Schema(t testing.TB) string {
	t.Helper()
	return SchemaAt(t, Server(t))
}

// SchemaAt is Schema at the server of a URL.
func SchemaAt(t testing.TB, server string) string {
	t.Helper()
	address, err := schema(t.Context(), server, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func schema(ctx context.Context, server, path string) (address string, err error) {
	name := fmt.Sprintf("t_%x", sha256.Sum256([]byte(path)))[:30]
	if err := Execute(ctx, server, "CREATE SCHEMA IF NOT EXISTS "+name); err != nil {
		return "", err
	}
	return With(server, "search_path", name, "application_name", name), nil
}

// With returns the address of a database with other values of parameters, which follow their names.
func With(address string, parameters ...string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	query := u.Query()
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Execute executes statements as the superuser.
func Execute(ctx context.Context, address, statements string, args ...any) error {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statements, args...)
	return errors.Join(err, db.Close())
}

// Terminate ends all connections to a schema.
func Terminate(t testing.TB, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err == nil {
		err = Execute(t.Context(), With(address, "application_name", "terminate"), `SELECT pg_terminate_backend(pid)
			FROM pg_stat_activity WHERE application_name = $1`, u.Query().Get("application_name"))
	}
	if err != nil {
		t.Fatal(err)
	}
}
