// Package replay records the answers that a run received, so that its code can run
// again with the same answers and without calling a server. A recording holds the
// results of tools unredacted. Recordings are compressed and encrypted at rest, their
// total size is limited, and they expire.
package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/retention"
)

const (
	suffix      = ".replay.age"
	draftSuffix = ".draft" // of one that is being made, or whose process died
	keyFile     = "replay.key"
)

// ErrNotFound is returned if a run was not recorded, or its recording has expired.
var ErrNotFound = errors.New("there is no recording of the run")

// Options of a store. The zero value is usable.
type Options = retention.Options

// Store is a directory of recordings. Methods may be called concurrently, also by
// several processes.
type Store struct {
	dir      string
	identity *agekey.Key
	kept     *retention.Keeper
	packers  sync.Pool // of *gzip.Writer, those of recordings that have ended
}

// Open opens the store in dir, creating it at first use, and removes what has
// expired or is too much.
func Open(dir string, opts *Options) (s *Store, err error) {
	s = &Store{dir: dir}
	if s.kept, s.identity, err = retention.Open(dir, keyFile, opts); err == nil {
		err = s.prune()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the recordings: %w", err)
	}
	return s, nil
}

// runID is the form of a run's ID; another never becomes part of a path.
var runID = lazyregexp.New(`^run_[0-9a-zA-Z]{1,64}$`)

func (s *Store) path(run string) (string, error) { return pathOf(s.dir, run) }

func pathOf(dir, run string) (string, error) {
	if !runID.MatchString(run) {
		return "", fmt.Errorf("%q is not the ID of a run: %w", run, ErrNotFound)
	}
	return filepath.Join(dir, run+suffix), nil
}

// Remove removes the recording of a run from a store in dir. The error is ErrNotFound if there is
// none.
func Remove(dir, run string) error {
	path, err := pathOf(dir, run)
	if err != nil {
		return err
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the recording of run %q: %w", run, ErrNotFound)
	} else if err != nil {
		return fmt.Errorf("removing the recording of run %q: %w", run, err)
	}
	return nil
}

// Head is what a run was made of.
type Head struct {
	RunID     string `json:"run_id"`
	Principal string `json:"principal,omitempty"`
	// Issuer and CallerKind complete the principal: see internal/caller.
	Issuer     string `json:"issuer,omitempty"`
	CallerKind string `json:"caller_kind,omitempty"`
	SessionID  string `json:"session_id,omitempty"`
	Language   string `json:"language"`
	Code       string `json:"code"`
	CodeHash   string `json:"code_hash"`
	Image      string `json:"image"`    // name@sha256:…
	Snapshot   string `json:"snapshot"` // digest of the tools
}

// Exchange is one call with its answer, exactly as the code saw it.
type Exchange struct {
	Number    int             `json:"number"` // in order of the calls' beginnings, from 1
	ServerID  string          `json:"server_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Answer    json.RawMessage `json:"answer"`
}

// Recording is all that was kept of one run.
type Recording struct {
	Head
	Exchanges []Exchange // by number
	Tools     []byte     // the tools of the snapshot, as passed to Create; nil if they are not stored
	Output
}

// line is one line of a recording; one member of it is set.
type line struct {
	Head     *Head     `json:"head,omitempty"`
	Exchange *Exchange `json:"exchange,omitempty"`
	End      *ending   `json:"end,omitempty"`
}

// Output is the result of a run, as returned to its caller.
type Output struct {
	OutputDigest string          `json:"output_digest"`
	Envelope     json.RawMessage `json:"envelope,omitempty"` // missing in recordings of older versions
	Stdout       string          `json:"stdout,omitempty"`
	Stderr       string          `json:"stderr,omitempty"`
}

type ending struct {
	Output
	Exchanges int `json:"exchanges"`
}
