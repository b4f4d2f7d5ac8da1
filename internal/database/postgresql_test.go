package database_test

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// Two transactions that each read what the other writes cannot both count: one is undone and repeated.
func TestARefusedTransactionIsRepeated(t *testing.T) {
	db := onServer(t, databasetest.Schema(t)).must(t, table)
	var calls [2]int
	var meet, wait sync.WaitGroup
	meet.Add(2)
	for i, name := range []string{"a", "b"} {
		wait.Go(func() {
			err := db.Update(t.Context(), func(tx database.Tx) error {
				calls[i]++
				var n int
				if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM entry").Scan(&n); err != nil {
					return err
				}
				if calls[i] == 1 { // both have read before one writes
					meet.Done()
					meet.Wait()
				}
				return insert(name, n)(tx)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if calls[0]+calls[1] != 3 {
		t.Errorf("the transactions were tried %v times, want one of them twice", calls)
	}
	var sum int
	if err := db.View(t.Context(), func(tx database.Tx) error {
		return tx.QueryRowContext(t.Context(), "SELECT sum(n) FROM entry").Scan(&sum)
	}); err != nil || sum != 1 {
		t.Errorf("they counted %d in all (%v), want 0 and 1", sum, err)
	}
}

func TestALostConnectionIsReplaced(t *testing.T) {
	address := databasetest.Schema(t)
	db := onServer(t, address).must(t, table)
	for name, transact := range map[string]func(func(database.Tx) error) error{
		"update": func(f func(database.Tx) error) error { return db.Update(t.Context(), f) },
		"view":   func(f func(database.Tx) error) error { return db.View(t.Context(), f) },
		"query":  func(f func(database.Tx) error) error { return db.Query(t.Context(), f) },
	} {
		calls, n := 0, 0
		err := transact(func(tx database.Tx) error {
			if name == "update" {
				if err := insert("lost", 1)(tx); err != nil {
					return err
				}
			}
			if calls++; calls == 1 {
				databasetest.Terminate(t, address)
			}
			return tx.QueryRowContext(t.Context(), "SELECT count(*) FROM entry").Scan(&n)
		})
		if err != nil || calls != 2 {
			t.Errorf("%s: %d calls, %v; want 2", name, calls, err)
		}
	}
	if got := count(t, db); got != 1 {
		t.Errorf("%d entries, want the one of the second call", got)
	}
	databasetest.Terminate(t, address) // while nothing is under way
	if err := db.Update(t.Context(), insert("after", 1)); err != nil {
		t.Error(err)
	}
	databasetest.Terminate(t, address)
	var n int
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM entry", nil, &n); err != nil || n != 2 {
		t.Errorf("%d entries, %v", n, err)
	}
}

// If the connection ends with COMMIT, it is not known whether the transaction is committed, so it is not repeated.
func TestAnUnknownCommitIsNotRepeated(t *testing.T) {
	address := databasetest.Schema(t)
	db := onServer(t, address).must(t, table)
	calls := 0
	err := db.Update(t.Context(), func(tx database.Tx) error {
		calls++
		err := insert("a", 1)(tx)
		databasetest.Terminate(t, address)
		return err
	})
	if err == nil || calls != 1 {
		t.Errorf("%d calls, %v; want one that fails", calls, err)
	}
}

// issue 28: a view whose connection ended with its last statement failed. It has nothing to commit, so it is repeated.
func TestAViewIsRepeatedIfItsEndIsUnknown(t *testing.T) {
	address := databasetest.Schema(t)
	db := onServer(t, address).must(t, table)
	calls, n := 0, 0
	err := db.View(t.Context(), func(tx database.Tx) error {
		err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM entry").Scan(&n)
		if calls++; calls == 1 {
			databasetest.Terminate(t, address)
		}
		return err
	})
	if err != nil || calls != 2 {
		t.Errorf("%d calls, %v; want 2", calls, err)
	}
}

func TestSetupErrorsHaveHints(t *testing.T) {
	address := databasetest.Schema(t)
	superuser := func(statements string) {
		t.Helper()
		if err := databasetest.Execute(t.Context(), address, statements); err != nil {
			t.Fatal(err)
		}
	}
	at := func(address string) *url.URL {
		t.Helper()
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	named := func(database string) string {
		u := at(address)
		u.Path = database
		return u.String()
	}
	superuser(`CREATE TABLE entry (name TEXT)`)
	readable := databasetest.Schema(t)
	schema := at(readable).Query().Get("search_path")
	guest, latin := "guest_"+schema, "latin_"+schema
	superuser(`CREATE ROLE ` + guest + ` LOGIN`)
	superuser(`CREATE ROLE ` + guest + `_full LOGIN CONNECTION LIMIT 0`)
	superuser(`GRANT USAGE ON SCHEMA ` + schema + ` TO ` + guest)
	superuser(`CREATE DATABASE ` + latin + ` ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
	newer := databasetest.Schema(t)
	onServer(t, newer).must(t, table, `CREATE TABLE two (n INTEGER)`)
	for name, test := range map[string]struct{ address, text, hint string }{
		"no URL": {"postgres://user:geheim@host:port/a", "is not one of PostgreSQL",
			"postgres://USER@HOST/DATABASE"},
		"no server":     {"postgres://user:geheim@127.0.0.1:1/a", "cannot be reached", "start it"},
		"no database":   {named("/nothing"), "does not exist", "createdb"},
		"encoding":      {named("/" + latin), "encoding is LATIN1", "UTF8"},
		"no schema":     {databasetest.With(address, "search_path", "nothing"), "search_path", "CREATE SCHEMA"},
		"foreign table": {address, "Airlock has not made", "a separate database"},
		"unknown user":  {databasetest.With(address, "user", "nobody"), "does not accept the user", "correct the user"},
		"no rights":     {databasetest.With(readable, "user", guest), "lacks rights", "OWNER TO"},
		"connections":   {databasetest.With(readable, "user", guest+"_full"), "no more connections", "max_connections"},
		"newer":         {newer, "a later version of Airlock wrote it", "install that version"},
		"standby": {databasetest.With(address, "default_transaction_read_only", "on"), "it is a standby",
			"name the primary"},
	} {
		_, err := onServer(t, test.address)(table)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, want %q", name, err, test.text)
		}
		var advised interface{ Hint() string }
		if !errors.As(err, &advised) || !strings.Contains(advised.Hint(), test.hint) {
			t.Errorf("%s: the hint of %v is not %q", name, err, test.hint)
		}
	}
}

// A full disk is an error with a hint, and the database works again when there is space.
func TestAFullDiskHasAHint(t *testing.T) {
	address := databasetest.Schema(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	// Next to the socket of the server, whose user must have the directory.
	dir, err := os.MkdirTemp(u.Query().Get("host"), "small")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	var owner unix.Stat_t
	if err := unix.Stat(filepath.Dir(dir), &owner); err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("size=16m,mode=0700,uid=%d,gid=%d", owner.Uid, owner.Gid)
	switch err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); {
	case errors.Is(err, unix.EPERM):
		t.Skip("needs the right to mount a file system")
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	small := filepath.Base(dir)
	if err := databasetest.Execute(t.Context(), address, "CREATE TABLESPACE "+small+" LOCATION '"+dir+"'"); err != nil {
		t.Fatal(err)
	}
	db := onServer(t, databasetest.With(address, "default_tablespace", small)).must(t, table)
	err = db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(),
			"INSERT INTO entry SELECT md5(random()::text) || n, n FROM generate_series(1, 300000) n")
		return err
	})
	var advised interface{ Hint() string }
	if err == nil || !strings.Contains(err.Error(), "its disk is full") || !errors.As(err, &advised) ||
		!strings.Contains(advised.Hint(), "free space") {
		t.Errorf("on a full disk: %v", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), insert("again", 1)); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

// issue 28: if the machine of the first host has disappeared, its connections get no answer, and the next host is used.
func TestAHostThatGivesNoAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	address := databasetest.Schema(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(silent.Addr().String())
	both := databasetest.With(address, "host", "127.0.0.1,"+u.Query().Get("host"), "port", port+",5432")
	db := onServer(t, both).must(t, table)
	databasetest.Terminate(t, address)
	if err := db.Update(t.Context(), insert("again", 1)); err != nil {
		t.Error(err)
	}
}
