package database_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

const table = `CREATE TABLE entry (name TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT`

// opener opens the database of a test, again and again, as several processes do.
type opener func(versions ...string) (*database.DB, error)

// onBoth runs a test on both engines.
func onBoth(t *testing.T, test func(t *testing.T, open opener)) {
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state", "a.db")
		test(t, func(versions ...string) (*database.DB, error) {
			return database.Open(t.Context(), path, versions...)
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) { test(t, onServer(t, databasetest.Schema(t))) })
}

func onServer(t *testing.T, address string) opener {
	return func(versions ...string) (*database.DB, error) {
		return database.OpenPostgreSQL(t.Context(), secret.New(address), "a", versions...)
	}
}

func (o opener) must(t *testing.T, versions ...string) *database.DB {
	t.Helper()
	db, err := o(versions...)
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
	onBoth(t, func(t *testing.T, open opener) {
		db := open.must(t, table)
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
	})
}

func TestAPanicIsTheErrorOfItsUpdate(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		db := open.must(t, table)
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
	})
}

// Each transaction writes a number that depends on the one it has read, so a lost update is noticed.
func TestTheUpdatesOfTwoProcessesDoNotOverlap(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		dbs := []*database.DB{open.must(t, table), open.must(t, table)}
		if err := dbs[0].Update(t.Context(), insert("a", 0)); err != nil {
			t.Fatal(err)
		}
		read := func(tx database.Tx) (n int, err error) {
			return n, tx.QueryRowContext(t.Context(), "SELECT n FROM entry WHERE name = ?", "a").Scan(&n)
		}
		var wait sync.WaitGroup
		for i := range 100 {
			wait.Go(func() {
				err := dbs[i%2].Update(t.Context(), func(tx database.Tx) error {
					n, err := read(tx)
					if err != nil {
						return err
					}
					_, err = tx.ExecContext(t.Context(), "UPDATE entry SET n = ?2 WHERE name = ?1", "a", n+1)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		var got int
		if err := dbs[0].View(t.Context(), func(tx database.Tx) (err error) {
			got, err = read(tx)
			return err
		}); err != nil || got != 100 {
			t.Errorf("%d updates count (%v), want 100", got, err)
		}
	})
}

func TestAViewHasOneState(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		db := open.must(t, table)
		err := db.View(t.Context(), func(tx database.Tx) error {
			for _, name := range []string{"a", "b"} {
				var n int
				if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM entry").Scan(&n); err != nil || n != 0 {
					t.Errorf("%d entries (%v), want none", n, err)
				}
				if err := db.Update(t.Context(), insert(name, 1)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || count(t, db) != 2 {
			t.Errorf("%d entries after the view (%v), want 2", count(t, db), err)
		}
	})
}

func TestVersionsFollowEachOther(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		first := open.must(t, table)
		if err := first.Update(t.Context(), insert("a", 1)); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := open.must(t, table, `ALTER TABLE entry ADD COLUMN note TEXT`)
		if got := count(t, second); got != 1 {
			t.Errorf("%d entries after the second version, want 1", got)
		}
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := open(table); !errors.Is(err, database.ErrNewer) {
			t.Errorf("an older program opened it: %v", err)
		}
	})
}

func TestProcessesMigrateOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				db, err := open(table, `INSERT INTO entry VALUES ('a', 1)`)
				if err != nil {
					t.Error(err)
					return
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	})
}

func TestAfterCloseUpdatesAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		db := open.must(t, table)
		if err := errors.Join(db.Close(), db.Close()); err != nil {
			t.Fatal(err)
		}
		if err := db.Update(t.Context(), insert("a", 1)); !errors.Is(err, database.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
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

func BenchmarkUpdate(b *testing.B) {
	db, err := database.Open(b.Context(), filepath.Join(b.TempDir(), "a.db"), table)
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, db)
}

func BenchmarkUpdateInPostgreSQL(b *testing.B) {
	db, err := database.OpenPostgreSQL(b.Context(), secret.New(databasetest.Schema(b)), "a", table)
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, db)
}

func benchmark(b *testing.B, db *database.DB) {
	defer db.Close()
	update := func(name string) func(tx database.Tx) error {
		return func(tx database.Tx) error {
			_, err := tx.ExecContext(b.Context(),
				"INSERT INTO entry VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET n = entry.n + 1", name)
			return err
		}
	}
	b.Run("one at a time", func(b *testing.B) {
		for b.Loop() {
			if err := db.Update(b.Context(), update("a")); err != nil {
				b.Fatal(err)
			}
		}
	})
	together := func(b *testing.B, names int) {
		var callers atomic.Int32
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			name := fmt.Sprint("b", int(callers.Add(1))%names)
			for pb.Next() {
				if err := db.Update(b.Context(), update(name)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.Run("together", func(b *testing.B) { together(b, 1) })
	b.Run("together, different rows", func(b *testing.B) { together(b, 32) })
}

func TestARepeatingDatabaseCallsFunctionsTwiceAndUndoesTheFirstCall(t *testing.T) {
	onBoth(t, func(t *testing.T, open opener) {
		db := open.must(t, table).Repeating()
		updates, views := 0, 0
		err := db.Update(t.Context(), func(tx database.Tx) error {
			updates++
			return insert("a", updates)(tx)
		})
		if err == nil {
			err = db.View(t.Context(), func(database.Tx) error { views++; return nil })
		}
		if n := count(t, db); err != nil || n != 1 || updates != 2 || views != 2 {
			t.Errorf("%d rows after %d calls, %d of the view (%v)", n, updates, views, err)
		}
	})
}
