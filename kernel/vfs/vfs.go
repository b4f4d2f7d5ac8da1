// Package vfs stores the files that agents keep in the kernel. The number of files and bytes of each
// agent is limited, and files are encrypted at rest. A write replaces a whole file. A file is a row of
// the database, not a file of the host, so it cannot be a link or a device, and a path cannot lead to
// anything else.
package vfs

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
)

// Schema creates the table of files.
const Schema = `
CREATE TABLE vfs (
	agent   TEXT NOT NULL,
	path    TEXT NOT NULL,
	sealed  BLOB NOT NULL,    -- encrypted with age: agent and path, each with a NUL, and the content
	bytes   INTEGER NOT NULL, -- of the content
	changed INTEGER NOT NULL, -- seconds since 1970
	PRIMARY KEY (agent, path)
) STRICT;`

// Limits are the limits for the files of one agent.
type Limits struct {
	Files     int   // number of files
	FileBytes int64 // bytes of one file
	Bytes     int64 // bytes of all files together
}

var (
	// ErrNotFound is returned for a file that does not exist.
	ErrNotFound = errors.New("there is no such file")
	// ErrDamaged is returned if another program changed a stored file.
	ErrDamaged = errors.New("the stored file is damaged")
)

// A LimitError describes the limit that a write would exceed.
type LimitError struct{ Text string }

// Error returns the text.
func (e *LimitError) Error() string { return e.Text }

// File describes one file.
type File struct {
	Path    string    `json:"path"`
	Bytes   int64     `json:"bytes"`
	Changed time.Time `json:"changed"` // UTC, whole seconds
}

// Store contains the files of all agents. It is safe for concurrent use; writes are atomic.
// The caller must check who may access an agent's files.
type Store struct {
	db     *database.DB
	key    *agekey.Own
	limits Limits
	now    func() time.Time
}

// New returns the files in a database with the table of Schema. now is the
// clock; nil means time.Now.
func New(db *database.DB, key *agekey.Key, limits Limits, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{db, agekey.OwnOf(key), limits, now}
}

// Read returns the content of a file, or ErrNotFound, a *PathError or ErrDamaged.
func (s *Store) Read(ctx context.Context, agent, path string) ([]byte, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	var sealed []byte
	err := s.db.QueryRow(ctx, `SELECT sealed FROM vfs WHERE agent = ? AND path = ?`, []any{agent, path}, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return s.open(sealed, agent, path)
}

// Write replaces the content of a file atomically, or creates it. The error is a *PathError, a
// *LimitError, or that it could not be stored.
func (s *Store) Write(ctx context.Context, agent, path string, content []byte) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	if int64(len(content)) > s.limits.FileBytes {
		return &LimitError{fmt.Sprintf("the file has %d bytes, and a file has at most %d", len(content),
			s.limits.FileBytes)}
	}
	sealed, err := s.seal(agent, path, content)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, func(tx database.Tx) error {
		if err := s.fits(ctx, tx, agent, path, int64(len(content))); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO vfs VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (agent, path) DO UPDATE SET sealed = excluded.sealed, bytes = excluded.bytes, changed = excluded.changed`,
			agent, path, sealed, len(content), s.now().Unix())
		return err
	})
}

// fits checks that an agent stays within its limits after a write.
func (s *Store) fits(ctx context.Context, tx database.Tx, agent, path string, size int64) error {
	var files int
	var bytes int64
	err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(bytes), 0) FROM vfs WHERE agent = ? AND path <> ?`,
		agent, path).Scan(&files, &bytes)
	switch {
	case err != nil:
		return err
	case files+1 > s.limits.Files:
		return &LimitError{fmt.Sprintf("there are %d files, and an agent has at most %d", files, s.limits.Files)}
	case bytes+size > s.limits.Bytes:
		return &LimitError{fmt.Sprintf("the files would have %d bytes, and those of an agent have at most %d",
			bytes+size, s.limits.Bytes)}
	}
	return notInside(ctx, tx, agent, path)
}

// notInside refuses a path if one of its parents is a file, or if it is a directory itself.
func notInside(ctx context.Context, tx database.Tx, agent, path string) error {
	for at := range len(path) {
		if path[at] != '/' {
			continue
		}
		var one int
		err := tx.QueryRowContext(ctx, `SELECT 1 FROM vfs WHERE agent = ? AND path = ?`, agent, path[:at]).Scan(&one)
		if err == nil {
			return &PathError{fmt.Sprintf("%q is a file, so nothing is inside it", path[:at])}
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	var inside string
	// '0' is the character after '/'.
	err := tx.QueryRowContext(ctx, `SELECT path FROM vfs WHERE agent = ? AND path > ? AND path < ? LIMIT 1`, agent,
		path+"/", path+"0").Scan(&inside)
	if err == nil {
		return &PathError{fmt.Sprintf("%q is a directory: there is a file %q", path, inside)}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// Remove deletes a file, or returns ErrNotFound or a *PathError.
func (s *Store) Remove(ctx context.Context, agent, path string) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	removed, err := s.db.Change(ctx, `DELETE FROM vfs WHERE agent = ? AND path = ?`, agent, path)
	if err == nil && !removed {
		err = ErrNotFound
	}
	return err
}

// List returns at most n files of an agent, ordered by path, starting after the path after.
// directory selects the files inside it; empty selects all.
func (s *Store) List(ctx context.Context, agent, directory, after string, n int) ([]File, error) {
	first, last := "", "\U0010FFFF"
	if directory = strings.TrimSuffix(directory, "/"); directory != "" {
		if err := CheckPath(directory); err != nil {
			return nil, err
		}
		first, last = directory+"/", directory+"0"
	}
	return database.Rows(ctx, s.db, `SELECT path, bytes, changed FROM vfs WHERE agent = ? AND path > ? AND path >= ? AND
		path < ? ORDER BY path LIMIT ?`, []any{agent, after, first, last, n}, func(rows *sql.Rows) (f File, err error) {
		var changed int64
		err = rows.Scan(&f.Path, &f.Bytes, &changed)
		f.Changed = time.Unix(changed, 0).UTC()
		return f, err
	})
}

// Usage returns the number of an agent's files and their size in bytes.
func (s *Store) Usage(ctx context.Context, agent string) (files int, bytes int64, err error) {
	err = s.db.QueryRow(ctx, `SELECT count(*), coalesce(sum(bytes), 0) FROM vfs WHERE agent = ?`,
		[]any{agent}, &files, &bytes)
	return files, bytes, err
}

// owner binds sealed content to its row: content moved elsewhere in the database is damaged.
func owner(agent, path string) []byte { return []byte(agent + "\x00" + path + "\x00") }

func (s *Store) seal(agent, path string, content []byte) ([]byte, error) {
	return agekey.Seal(s.key, owner(agent, path), content)
}

func (s *Store) open(sealed []byte, agent, path string) ([]byte, error) {
	content, err := agekey.Open(sealed, s.key)
	if err != nil {
		return nil, ErrDamaged
	}
	content, ours := bytes.CutPrefix(content, owner(agent, path))
	if !ours {
		return nil, ErrDamaged
	}
	return content, nil
}
