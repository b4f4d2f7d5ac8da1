package database_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database"
)

// added is a late write: it adds numbers to rows, and counts how often it is executed.
type added struct {
	*testing.T
	rows     map[string]int
	executed *int
	fails    bool
}

func (added) Key() any { return "rows" }

func (a added) After(earlier database.Write) database.Write {
	sum := earlier.(added)
	for name, n := range a.rows {
		sum.rows[name] += n
	}
	sum.fails = sum.fails || a.fails
	return sum
}

func (a added) Execute(ctx context.Context, tx database.Tx) error {
	*a.executed++
	if a.fails {
		return errors.New("the disk is full")
	}
	for name, n := range a.rows {
		if _, err := database.ExecKeeping(ctx, tx, `INSERT INTO entry VALUES (?, ?)
			ON CONFLICT (name) DO UPDATE SET n = entry.n + excluded.n`, name, n); err != nil {
			return err
		}
	}
	return nil
}

// together runs updates, which share a commit in SQLite, and returns their errors.
func together(t *testing.T, db *database.DB, all ...func(database.Tx) error) []error {
	t.Helper()
	errs := make([]error, len(all))
	begun, held := make(chan struct{}), make(chan struct{})
	var wait, handed sync.WaitGroup
	wait.Go(func() {
		_ = db.Update(t.Context(), func(database.Tx) error { close(begun); <-held; return nil })
	})
	<-begun
	for i, f := range all {
		handed.Add(1)
		wait.Go(func() { handed.Done(); errs[i] = db.Update(t.Context(), f) })
	}
	handed.Wait()
	close(held)
	wait.Wait()
	return errs
}

func entries(t *testing.T, db *database.DB) string {
	t.Helper()
	var all []string
	err := db.View(t.Context(), func(tx database.Tx) error {
		rows, err := tx.QueryContext(t.Context(), "SELECT name, n FROM entry ORDER BY name")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var n int
			if err := rows.Scan(&name, &n); err != nil {
				return err
			}
			all = append(all, fmt.Sprint(name, n))
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// Late writes of updates that succeed have the effect of statements in their order, those of failed updates have none,
// and each statement finds what was written before it (#24).
func TestLateWrites(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		db := open.must(t, table)
		executed := 0
		later := func(tx database.Tx, name string, n int) error {
			return database.Later(t.Context(), tx, added{t, map[string]int{name: n}, &executed, false})
		}
		refused := errors.New("refused")
		var mu sync.Mutex // PostgreSQL runs updates concurrently
		errs := together(t, db,
			func(tx database.Tx) error { mu.Lock(); defer mu.Unlock(); return later(tx, "a", 1) },
			func(tx database.Tx) error {
				mu.Lock()
				defer mu.Unlock()
				return errors.Join(later(tx, "a", 10), later(tx, "lost", 1), refused)
			},
			func(tx database.Tx) error {
				mu.Lock()
				defer mu.Unlock()
				if err := later(tx, "b", 2); err != nil {
					return err
				}
				var n int
				err := tx.QueryRowContext(t.Context(), "SELECT n FROM entry WHERE name = 'b'").Scan(&n)
				if err != nil || n != 2 {
					t.Errorf("a statement found %d, %v, want the 2 that its update has written", n, err)
				}
				return later(tx, "b", 3)
			},
			func(tx database.Tx) error {
				mu.Lock()
				defer mu.Unlock()
				err := insert("gone", 1)(tx)
				return errors.Join(err, later(tx, "gone", 1), refused)
			},
			func(tx database.Tx) error { mu.Lock(); defer mu.Unlock(); return later(tx, "a", 100) },
		)
		for i, err := range errs {
			if failed := i == 1 || i == 3; failed != errors.Is(err, refused) {
				t.Errorf("update %d: got %v", i, err)
			}
		}
		if got, want := entries(t, db), "a101 b5"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Updates that share a commit execute their late writes once.
func TestLateWritesAreMerged(t *testing.T) {
	db := opener(func(versions ...string) (*database.DB, error) {
		return database.Open(t.Context(), t.TempDir()+"/a.db", versions...)
	}).must(t, table)
	executed := 0
	err := db.Update(t.Context(), func(tx database.Tx) error {
		var errs []error
		for range 5 {
			errs = append(errs, database.Later(t.Context(), tx, added{t, map[string]int{"a": 1}, &executed, false}))
		}
		return errors.Join(errs...)
	})
	if err != nil || executed != 1 || entries(t, db) != "a5" {
		t.Errorf("got %q by %d writes, %v", entries(t, db), executed, err)
	}
}

// A late write that fails undoes all updates that share its commit, and none after them.
func TestLateWriteThatFails(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		db := open.must(t, table)
		fail := func(tx database.Tx) error {
			return database.Later(t.Context(), tx, added{t, map[string]int{"a": 1}, new(int), true})
		}
		for name, after := range map[string]func(database.Tx) error{
			"at the commit":      func(database.Tx) error { return nil },
			"before a statement": insert("b", 1),
			"before a query": func(tx database.Tx) error {
				var n int
				return tx.QueryRowContext(t.Context(), "SELECT count(*) FROM entry").Scan(&n)
			},
		} {
			err := db.Update(t.Context(), func(tx database.Tx) error { return errors.Join(fail(tx), after(tx)) })
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if err := db.Update(t.Context(), insert("c", 1)); err != nil || entries(t, db) != "c1" {
			t.Errorf("got %q, %v", entries(t, db), err)
		}
	})
}
