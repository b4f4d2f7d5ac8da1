package database_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database"
)

const table = `CREATE TABLE entry (name TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT`

func open(t *testing.T, path string, versions ...string) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), path, versions...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func insert(name string, n int) func(database.Tx) error {
	return func(tx database.Tx) error {
		_, err := tx.ExecContext(context.Background(), "INSERT INTO entry VALUES (?, ?)", name, n)
		return err
	}
}

func count(t *testing.T, db *database.DB) (n int) {
	t.Helper()
	err := db.View(t.Context(), func(tx database.Tx) error {
		return tx.QueryRowContext(t.Context(), "SELECT count(*) FROM entry").Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOneFailedUpdateUndoesItselfAlone(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "state", "a.db"), table)
	refused := errors.New("refused")
	var wait sync.WaitGroup
	for i := range 200 {
		wait.Go(func() {
			err := db.Update(t.Context(), func(tx database.Tx) error {
				if err := insert(string(rune('a'+i)), i)(tx); err != nil {
					return err
				}
				if i%2 == 1 {
					return refused
				}
				return nil
			})
			if i%2 == 1 != errors.Is(err, refused) {
				t.Errorf("update %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	if got := count(t, db); got != 100 {
		t.Errorf("%d entries, want 100", got)
	}
}

func TestAPanicIsTheErrorOfItsUpdate(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), table)
	err := db.Update(t.Context(), func(tx database.Tx) error {
		_ = insert("kept?", 1)(tx)
		panic("no")
	})
	if err == nil {
		t.Error("no error")
	}
	if err := db.Update(t.Context(), insert("after", 2)); err != nil {
		t.Fatal(err)
	}
	if got := count(t, db); got != 1 {
		t.Errorf("%d entries, want the one after the panic", got)
	}
}

func TestTwoProcessesTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	dbs := []*database.DB{open(t, path, table), open(t, path, table)}
	var wait sync.WaitGroup
	for i := range 100 {
		wait.Go(func() {
			if err := dbs[i%2].Update(t.Context(), insert(string(rune('a'+i)), i)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := count(t, dbs[0]); got != 100 {
		t.Errorf("%d entries, want 100", got)
	}
}

func TestVersionsFollowEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	first := open(t, path, table)
	if err := first.Update(t.Context(), insert("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, path, table, `ALTER TABLE entry ADD COLUMN note TEXT`)
	if got := count(t, second); got != 1 {
		t.Errorf("%d entries after the second version, want 1", got)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := database.Open(t.Context(), path, table); !errors.Is(err, database.ErrNewer) {
		t.Errorf("an older program opened it: %v", err)
	}
}

func TestAFileThatOthersCanReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := database.Open(t.Context(), path, table); err == nil {
		t.Error("it was opened")
	}
}

func TestAfterCloseUpdatesAreRefused(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), table)
	if err := errors.Join(db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), insert("a", 1)); !errors.Is(err, database.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

func BenchmarkUpdate(b *testing.B) {
	db, err := database.Open(b.Context(), filepath.Join(b.TempDir(), "a.db"), table)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	update := func(tx database.Tx) error {
		_, err := tx.ExecContext(
			b.Context(), "INSERT INTO entry VALUES ('a', 1) ON CONFLICT (name) DO UPDATE SET n = n + 1")
		return err
	}
	b.Run("one at a time", func(b *testing.B) {
		for b.Loop() {
			if err := db.Update(b.Context(), update); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("together", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := db.Update(b.Context(), update); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
