// Package sqlread compares sqltext with real databases: a text that it classifies as a read must
// not change anything in any of them.
package sqlread

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// database executes texts as clients send them, several statements included.
type database struct {
	name string
	// execute reports whether a text changed something. The error is that of the database.
	execute func(ctx context.Context, text string) (changed bool, err error)
}

// missing skips a test whose program is not installed. In continuous integration it fails the test.
func missing(t *testing.T, program, target string) {
	t.Helper()
	if testenv.WantsSandboxes() {
		t.Fatalf("%s is missing (run `make %s` first)", program, target)
	}
	t.Skipf("needs %s: run `make %s`", program, target)
}

// find returns the path of a program that may not be in PATH.
func find(t *testing.T, target, program string, patterns ...string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(filepath.Join(pattern, program)); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	missing(t, program, target)
	return ""
}

// scratch returns a directory for a database, and the credentials for its server: databases refuse
// to run as root.
func scratch(t *testing.T) (string, *syscall.SysProcAttr) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sql") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Geteuid() != 0 {
		return dir, nil
	}
	account, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func run(t *testing.T, attr *syscall.SysProcAttr, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr, cmd.Dir = attr, dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// serve starts a server and stops it when the test ends.
func serve(t *testing.T, attr *syscall.SysProcAttr, dir, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr, cmd.Dir, cmd.Stdout, cmd.Stderr = attr, dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			if text, err := os.ReadFile(log.Name()); err == nil {
				t.Logf("%s", text[max(0, len(text)-2000):])
			}
		}
		_ = cmd.Process.Signal(syscall.SIGQUIT) // both servers shut down at once; it may have ended
		_ = cmd.Wait()
		log.Close()
	})
}

// retry calls f until it succeeds or the test has waited long enough.
func retry(t *testing.T, what string, f func() error) {
	t.Helper()
	var err error
	for range 600 {
		if err = f(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}

const postgresState = `SELECT concat((SELECT string_agg(id::text || name, ',' ORDER BY id) FROM users),
	(SELECT count(*) FROM t), (SELECT last_value::text || is_called FROM s), (SELECT count(*) FROM pg_class WHERE relkind <> 't'),
	(SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_roles), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
	current_setting('search_path'), current_setting('work_mem'), (SELECT count(*) FROM pg_largeobject_metadata))`

// postgresSetup creates functions with effects behind an operator, a cast and a domain.
const postgresSetup = `
CREATE TABLE users (id int, name text); CREATE TABLE t (a int, b text); CREATE SEQUENCE s;
CREATE FUNCTION purge_old_rows(VARIADIC x text[] DEFAULT '{}') RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM users; RETURN 1; END';
CREATE FUNCTION purge_pair(int, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM users; RETURN 1; END';
CREATE FUNCTION purge_check(text) RETURNS bool LANGUAGE plpgsql AS 'BEGIN DELETE FROM users; RETURN true; END';
CREATE OPERATOR @#@ (LEFTARG = int, RIGHTARG = int, FUNCTION = purge_pair);
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = purge_pair);
CREATE DOMAIN evil AS text CHECK (purge_check(VALUE));
CREATE SCHEMA cron; CREATE FUNCTION cron.schedule() RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM public.users; RETURN 1; END'`

const reset = "DELETE FROM users; DELETE FROM t; INSERT INTO users VALUES (1, 'a'), (2, 'b'); INSERT INTO t VALUES " +
	"(1, 'a')"

// postgres connects to a server once for each setting that changes how it reads SQL.
func postgres(t *testing.T) []database {
	t.Helper()
	server := databasetest.With(databasetest.Server(t), "statement_timeout", "3s")
	var all []database
	for i, setting := range []string{"", "SET standard_conforming_strings = off", "SET client_encoding = 'GBK'",
		"SET client_encoding = 'SJIS'"} {
		conn, err := pgconn.Connect(t.Context(), server)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		exec := func(ctx context.Context, text string) (string, error) {
			results, err := conn.Exec(ctx, text).ReadAll()
			if err == nil && len(results) > 0 && len(results[0].Rows) > 0 && len(results[0].Rows[0]) > 0 {
				return string(results[0].Rows[0][0]), nil
			}
			return "", err
		}
		must := func(text string) string {
			state, err := exec(t.Context(), text)
			if err != nil {
				t.Fatalf("PostgreSQL: %s: %v", text, err)
			}
			return state
		}
		if i == 0 {
			must(postgresSetup)
			must(reset)
		}
		if setting != "" {
			must(setting)
		}
		all = append(all, database{"PostgreSQL " + setting, func(ctx context.Context, text string) (bool, error) {
			before := must(postgresState)
			_, err := exec(ctx, text)
			if conn.TxStatus() != 'I' {
				must("ROLLBACK")
				return true, err
			}
			if state, stateErr := exec(ctx, postgresState); stateErr != nil || state != before {
				must("DISCARD ALL")
				must("DROP SCHEMA IF EXISTS public, cron CASCADE; CREATE SCHEMA public")
				must(postgresSetup)
				must(reset)
				must(setting)
				return true, err
			}
			return false, err
		}})
	}
	return all
}

const mariadbState = `SELECT concat_ws(' ', (SELECT group_concat(id, name ORDER BY id) FROM users), (SELECT count(*) FROM t), @@sql_mode, @a IS NULL, @@in_transaction,
	(SELECT group_concat(table_name) FROM information_schema.tables WHERE table_schema = 'test'), is_free_lock('a'), last_insert_id())`

func mariadb(t *testing.T) []database {
	t.Helper()
	server := find(t, "mariadb", "mariadbd", "/usr/sbin")
	install := find(t, "mariadb", "mariadb-install-db")
	dir, attr := scratch(t)
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "socket")
	run(t, attr, dir, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal",
		"--skip-test-db")
	serve(t, attr, dir, server, "--no-defaults", "--datadir="+data, "--socket="+socket, "--skip-networking",
		"--skip-grant-tables",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--max-statement-time=3",
		"--character-set-server=utf8mb4")
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.MultiStatements = "unix", socket, "root", true
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	pool := sql.OpenDB(connector)
	t.Cleanup(func() { pool.Close() })
	retry(t, "connecting to MariaDB", func() error { return pool.PingContext(t.Context()) })
	const setup = `CREATE DATABASE IF NOT EXISTS test; USE test; CREATE TABLE users (id int, name text); CREATE TABLE t (a int, b text);
		CREATE FUNCTION purge_old_rows() RETURNS int BEGIN DELETE FROM users; RETURN 1; END; ` + reset
	var all []database
	for i, setting := range []string{"DO 1", "SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
		"SET sql_mode = 'ORACLE'", "SET sql_mode = 'IGNORE_SPACE,PIPES_AS_CONCAT'", "SET NAMES gbk"} {
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		must := func(text string) {
			if _, err := conn.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("MariaDB: %s: %v", text, err)
			}
		}
		if i == 0 {
			must(setup)
		}
		must("USE test; " + setting)
		state := func(ctx context.Context) (s string) {
			if err := conn.QueryRowContext(ctx, mariadbState).Scan(&s); err != nil {
				return err.Error()
			}
			return s
		}
		all = append(all, database{"MariaDB " + setting, func(ctx context.Context, text string) (bool, error) {
			before := state(ctx)
			_, err := conn.ExecContext(ctx, text)
			if after := state(ctx); after != before {
				must("ROLLBACK; DO release_lock('a'); SET @a = NULL, sql_mode = ''; DROP DATABASE IF EXISTS test; " +
					setup + "; " + setting)
				return true, err
			}
			return false, err
		}})
	}
	return all
}

func sqlite(t *testing.T) database {
	t.Helper()
	python := find(t, "pip", "python3")
	cmd := exec.CommandContext(t.Context(), python, "testdata/sqlite.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	answers := bufio.NewScanner(out)
	return database{"SQLite", func(_ context.Context, text string) (bool, error) {
		line, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() {
			t.Fatalf("SQLite ended at %q", text)
		}
		var answer struct {
			Changed bool
			Error   string
		}
		if err := json.Unmarshal(answers.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Error != "" {
			return answer.Changed, fmt.Errorf("%s", strings.TrimSpace(answer.Error))
		}
		return answer.Changed, nil
	}}
}
