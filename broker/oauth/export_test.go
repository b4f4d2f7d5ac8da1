package oauth

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// StoreIn returns the store of another process with a state directory.
func StoreIn(t testing.TB, directory string) *Store {
	t.Helper()
	return storeWith(t, directory, 0)
}

func storeWith(t testing.TB, directory string, fresh time.Duration) *Store {
	t.Helper()
	db, err := databasetest.Open(t.Context(), filepath.Join(directory, "state.db"), Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() }) // a test may have closed it
	return NewStore(StoreOptions{Database: func(context.Context) (*database.DB, error) { return db, nil },
		Key: func() (*agekey.Key, error) {
			return agekey.LoadOrCreate(filepath.Join(directory, "keys", "own.key"))
		},
		Directory: filepath.Join(directory, "sign-ins"), Fresh: fresh,
		FormerKey: filepath.Join(directory, "keys", "oauth.key")})
}

// Rows returns the encrypted sign-ins by their IDs.
func (s *Store) Rows(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	s.exec(t, func(tx database.Tx) error {
		clear(all)
		rows, err := tx.QueryContext(t.Context(), "SELECT id, sealed FROM sign_in")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			var sealed []byte
			if err := rows.Scan(&id, &sealed); err != nil {
				return err
			}
			all[id] = sealed
		}
		return rows.Err()
	})
	return all
}

// Put replaces encrypted sign-ins, as a person who can write to the database does.
func (s *Store) Put(t testing.TB, all map[string][]byte) {
	t.Helper()
	s.exec(t, func(tx database.Tx) error {
		for id, sealed := range all {
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO sign_in VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "+
				"SET revision = excluded.revision, sealed = excluded.sealed", id, newID(), sealed); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) exec(t testing.TB, do func(database.Tx) error) {
	t.Helper()
	db, err := s.opts.Database(t.Context())
	if err == nil {
		err = db.Update(t.Context(), do)
	}
	if err != nil {
		t.Fatal(err)
	}
}
