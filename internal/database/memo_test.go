package database_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database"
)

// A value that an update keeps is only there for later updates while the database is as it was read.
func TestTheMemoIsEmptiedByEachOtherChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	open := opener(func(versions ...string) (*database.DB, error) {
		return database.Open(t.Context(), path, versions...)
	})
	db, other := open.must(t, table), open.must(t, table)
	update := func(by *database.DB, f func(database.Tx) error) func() {
		return func() {
			if err := by.Update(t.Context(), f); err != nil {
				t.Error(err)
			}
		}
	}
	query := func(text string) func(database.Tx) error {
		return func(tx database.Tx) error {
			var n int
			return tx.QueryRowContext(context.Background(), text).Scan(&n)
		}
	}
	for name, c := range map[string]struct {
		do   func()
		kept bool
	}{
		"nothing": {func() {}, true},
		"a view": {func() {
			if err := db.View(t.Context(), query("SELECT count(*) FROM entry")); err != nil {
				t.Error(err)
			}
		}, true},
		"a SELECT":                  {update(db, query("SELECT count(*) FROM entry")), true},
		"a statement":               {update(db, insert("a", 1)), false},
		"a query that is no SELECT": {update(db, query("UPDATE entry SET n = n + 1 RETURNING n")), false},
		"another process":           {update(other, insert("b", 1)), false},
		"a statement that keeps it": {update(db, func(tx database.Tx) error {
			_, err := database.ExecKeeping(t.Context(), tx, "INSERT INTO entry VALUES ('c', 1)")
			return err
		}), true},
		"an update that fails": {func() {
			refused := errors.New("refused")
			err := db.Update(t.Context(), func(tx database.Tx) error {
				database.MemoOf(tx).Put("key", "written")
				return refused
			})
			if !errors.Is(err, refused) {
				t.Error(err)
			}
		}, false},
		"an update that panics": {func() {
			if err := db.Update(t.Context(), func(database.Tx) error { panic("no") }); err == nil {
				t.Error("no error")
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			update(db, insert("seed "+name, 1))()
			update(db, func(tx database.Tx) error { database.MemoOf(tx).Put("key", "read"); return nil })()
			c.do()
			var got any
			update(db, func(tx database.Tx) error { got = database.MemoOf(tx).Get("key"); return nil })()
			if kept := got == "read"; kept != c.kept || got != nil && !kept {
				t.Errorf("got %v, kept %v, want %v", got, kept, c.kept)
			}
		})
	}
}

func TestAViewHasNoMemo(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		err := open.must(t, table).View(t.Context(), func(tx database.Tx) error {
			memo := database.MemoOf(tx)
			memo.Put("key", "read")
			if got := memo.Get("key"); got != nil {
				t.Errorf("got %v", got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// More views than there are connections wait for each other, also after a view that was cancelled.
func TestViewsShareTheirConnections(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		db := open.must(t, table)
		var wait sync.WaitGroup
		for i := range 50 {
			wait.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := db.View(ctx, func(tx database.Tx) error {
					if i%5 == 0 {
						cancel()
					}
					var n int
					return tx.QueryRowContext(ctx, "SELECT count(*) FROM entry").Scan(&n)
				})
				if (err != nil) != (i%5 == 0) {
					t.Errorf("view %d: got %v", i, err)
				}
			})
		}
		wait.Wait()
		if got := count(t, db); got != 0 {
			t.Errorf("got %d, want 0", got)
		}
	})
}
