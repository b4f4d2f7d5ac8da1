package database_test

import (
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

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
		"foreign table": {address, "Airlock has not made", "of its own"},
		"unknown user":  {databasetest.With(address, "user", "nobody"), "does not accept the user", "correct the user"},
		"no rights":     {databasetest.With(readable, "user", guest), "lacks rights", "OWNER TO"},
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
