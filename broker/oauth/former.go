package oauth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
)

// importFiles moves sign-ins into the database that former versions stored in files. A sign-in that the database has is
// newer. A file that cannot be read stays, and its person has not signed in.
func (s *Store) importFiles(ctx context.Context, db *database.DB, own *agekey.Own) (err error) {
	find := func() ([]string, error) { return filepath.Glob(filepath.Join(s.opts.Directory, "*.age")) }
	if paths, err := find(); err != nil || len(paths) == 0 || s.opts.FormerKey == "" {
		return err
	}
	// Without the lock, a process that has read a file could import it after a sign-out.
	lock, err := store.Acquire(ctx, filepath.Join(s.opts.Directory, "import.lock"), store.Exclusive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	paths, err := find()
	if err != nil || len(paths) == 0 {
		return err
	}
	key, err := agekey.LoadOrCreate(s.opts.FormerKey)
	if err != nil {
		return err
	}
	for _, path := range paths {
		sealed, err := store.ReadFile(path)
		if err != nil {
			continue
		}
		r, err := decode(sealed, agekey.OwnOf(key))
		if err != nil {
			continue
		}
		if sealed, err = seal(r, own); err != nil {
			return err
		}
		id := strings.TrimSuffix(filepath.Base(path), ".age")
		err = db.Exec(ctx, "INSERT INTO sign_in VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", id,
			newID(), sealed)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
