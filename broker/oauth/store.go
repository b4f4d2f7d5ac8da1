package oauth

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Schema makes the tables of a Store.
const Schema = `
CREATE TABLE sign_in (
	id       TEXT PRIMARY KEY, -- a hash of the principal, the server and its URL
	revision TEXT NOT NULL,    -- each change makes another one
	sealed   BLOB NOT NULL     -- encrypted with age
) STRICT;
CREATE TABLE sign_in_turn (
	id     TEXT PRIMARY KEY, -- of the sign-in that the holder may change
	holder TEXT NOT NULL,
	until  INTEGER NOT NULL  -- seconds since 1970
) STRICT;`

// StoreOptions are the options of NewStore. Database, Key and Directory are required.
type StoreOptions struct {
	// Database returns the state database. It is called for each operation.
	Database func(context.Context) (*database.DB, error)
	// Key returns the key that sign-ins are encrypted with, which is not in the database.
	Key func() (*agekey.Key, error)
	// Directory has the locks of a single machine.
	Directory string
	// Fresh is how long a sign-in that was read is used before the database is asked for changes by other processes.
	Fresh time.Duration
	// FormerKey is the file of the key of sign-ins that a former version has stored in files of Directory.
	FormerKey string
}

// Store keeps sign-ins in the state database: a row for each principal and server, encrypted with age
// (age-encryption.org/v1) to a key that the database does not have. Processes of several machines may use one database.
// A Store is safe for concurrent use.
type Store struct {
	opts    StoreOptions
	changes atomic.Int64 // by this process

	mu       sync.Mutex // guards the fields below
	own      *agekey.Own
	imported bool // no sign-in of a former version is left
}

// readTime is how long a request waits for the database to read its sign-in.
const readTime = 2 * time.Second

// NewStore returns a store. Directories and keys are created on first use.
func NewStore(opts StoreOptions) *Store { return &Store{opts: opts} }

// idOf returns the ID of a sign-in, which reveals nothing.
func idOf(principal, serverID, url string) string {
	digest := sha256.Sum256([]byte(strings.Join([]string{principal, serverID, url}, "\x00")))
	return hex.EncodeToString(digest[:16])
}

// awayError is returned if the database of a cluster does not answer.
type awayError struct{ cause error }

// Error returns the cause.
func (e *awayError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *awayError) Unwrap() error { return e.cause }

func isAway(err error) bool { return errors.As(err, new(*awayError)) }

// open returns the database and the key.
func (s *Store) open(ctx context.Context) (*database.DB, *agekey.Own, error) {
	db, err := s.opts.Database(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		key, err := s.opts.Key()
		if err != nil {
			return nil, nil, err
		}
		s.own = agekey.OwnOf(key)
	}
	if !s.imported {
		if err := s.importFiles(ctx, db, s.own); err != nil {
			return nil, nil, fmt.Errorf("importing the sign-ins of a former version: %w", err)
		}
		s.imported = true
	}
	return db, s.own, nil
}

// load returns a sign-in with its revision, or nil and "" if there is none. If the revision is known, the result is nil
// as well. The error is an *awayError if the database of a cluster does not answer, and an *unreadableError if the
// sign-in is damaged.
func (s *Store) load(ctx context.Context, id, known string) (_ *record, revision string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	db, own, err := s.open(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("reading a stored sign-in: %w", err)
	}
	var sealed []byte
	err = db.QueryRow(ctx, "SELECT revision, CASE WHEN revision <> ? THEN sealed END FROM sign_in "+
		"WHERE id = ?", []any{known, id}, &revision, &sealed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, "", nil
	case err != nil:
		return nil, "", away(db, fmt.Errorf("reading a stored sign-in: %w", err))
	case revision == known:
		return nil, revision, nil
	}
	r, err := decode(sealed, own)
	return r, revision, err
}

func away(db *database.DB, err error) error {
	if err != nil && db.IsShared() {
		return &awayError{err}
	}
	return err
}

func decode(sealed []byte, own *agekey.Own) (*record, error) {
	var r record
	plain, err := agekey.Open(sealed, own)
	if err == nil && strictjson.UnmarshalOpen(plain, &r) != nil { // its error would quote the text
		err = errors.New("it does not have the form of a sign-in")
	}
	if err == nil && r.Format != recordFormat {
		err = fmt.Errorf("it has the format %d, and this Airlock reads %d", r.Format, recordFormat)
	}
	if err != nil {
		return nil, &unreadableError{fmt.Errorf("a stored sign-in cannot be read: %w", err)}
	}
	return &r, nil
}

func seal(r *record, own *agekey.Own) ([]byte, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return nil, errors.New("it cannot be written as JSON")
	}
	return agekey.Seal(own, plain)
}

// SignIn describes a stored sign-in.
type SignIn struct {
	Principal string
	ServerID  string
	Issuer    string
	Scopes    []string
	Began     time.Time // when the person signed in; Renewed for sign-ins of older versions
	Renewed   time.Time // when its tokens were last issued, which a use of the sign-in causes
	Over      string    // why the person has to sign in again; empty if it can be used
}

// List returns the stored sign-ins of all principals, in no particular order.
func (s *Store) List(ctx context.Context) (list []SignIn, err error) {
	db, own, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := database.Rows(ctx, db, "SELECT sealed FROM sign_in", nil, database.Column[[]byte])
	for _, sealed := range rows {
		r, decodeErr := decode(sealed, own)
		if r != nil {
			one := SignIn{r.Principal, r.ServerID, r.Issuer, r.Tokens.Scopes, r.Began, r.Changed, r.Over}
			if one.Began.IsZero() {
				one.Began = one.Renewed
			}
			list = append(list, one)
		}
		err = errors.Join(err, decodeErr)
	}
	return list, err
}
