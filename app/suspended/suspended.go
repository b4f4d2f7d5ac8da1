// Package suspended stores what another process needs to continue a suspended run: one encrypted file for each run.
package suspended

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// keyFile is the name of the key in the directory of keys.
const keyFile = "suspended.key"

const suffix = ".run"

// runID is the form of a run's ID; another never becomes part of a path.
var runID = lazyregexp.New(`^run_[0-9a-zA-Z]{1,64}$`)

// Store keeps the suspended runs of one state directory. Its methods are safe for concurrent use by different runs.
type Store struct {
	dir string
	key *agekey.Key
}

// Open returns the store in dir, which it creates if needed, with a key in the directory keys. No other process may
// use the store: Open removes what a killed one has not finished writing.
func Open(dir, keys string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the suspended runs: %w", err)
	}
	key, err := agekey.LoadOrCreate(filepath.Join(keys, keyFile))
	if err != nil {
		return nil, fmt.Errorf("opening the suspended runs: %w", err)
	}
	drafts, err := filepath.Glob(filepath.Join(dir, ".run_*"+suffix+"-*"))
	for _, draft := range drafts {
		err = errors.Join(err, os.Remove(draft))
	}
	if err != nil {
		return nil, fmt.Errorf("opening the suspended runs: %w", err)
	}
	return &Store{dir: dir, key: key}, nil
}

// Dir is the directory of the store.
func (s *Store) Dir() string { return s.dir }

func (s *Store) path(run string) (string, error) {
	if !runID.MatchString(run) {
		return "", fmt.Errorf("%q is not the ID of a run", run)
	}
	return filepath.Join(s.dir, run+suffix), nil
}

// About is what is known of a stored run without its content. Another run, owner, image, format or number does not
// decrypt the content.
type About struct {
	Owner     string // the account of the caller
	Image     string // of its sandbox
	Format    string // of its state: the version of gVisor
	Number    int    // how often it was suspended
	Continued bool   // it went on: no other process can continue it
	Files     []File `json:"-"` // what another node needs to continue it; a Store does not need them
}

// File is a file that another node needs to continue a run. Files with the same name have the same content.
type File struct {
	Name string
	Read func() ([]byte, error)
}

// text identifies a stored run: its content is authenticated with it.
func (a About) text(run string) string {
	text, err := json.Marshal(struct {
		Run string
		About
	}{run, a})
	if err != nil {
		panic(err) // its members have a JSON form
	}
	return string(text)
}

// Put stores a run durably, in place of what was stored of it. The content must have a JSON form.
func (s *Store) Put(run string, content any, _ About) error {
	path, err := s.path(run)
	if err != nil {
		return fmt.Errorf("storing a suspended run: %w", err)
	}
	text, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("storing the suspended run %q: %w", run, err)
	}
	sealed, err := agekey.Seal(s.key.Recipient(), []byte(run+"\n"), text)
	if err == nil {
		err = store.WriteFile(path, sealed, 0o600)
	}
	if err != nil {
		return fmt.Errorf("storing the suspended run %q: %w", run, err)
	}
	return nil
}

// Remove removes the files of a run, if they exist.
func (s *Store) Remove(run string) error {
	path, err := s.path(run)
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List returns the IDs of the stored runs.
func (s *Store) List() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("listing the suspended runs: %w", err)
	}
	var runs []string
	for _, entry := range entries {
		if run, ok := strings.CutSuffix(entry.Name(), suffix); ok && runID.MatchString(run) {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// ErrDamaged is returned for a file that this Airlock has not written for this run, or that was changed since.
var ErrDamaged = errors.New("what was stored of the run was changed, or belongs to another run or Airlock")

// Get reads a stored run into content. The error is ErrDamaged if the file is not what Put has written.
func (s *Store) Get(run string, content any) error {
	path, err := s.path(run)
	if err != nil {
		return err
	}
	sealed, err := store.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the suspended run %q: %w", run, err)
	}
	plain, err := agekey.Open(sealed, s.key)
	if err != nil {
		return ErrDamaged
	}
	text, ours := strings.CutPrefix(string(plain), run+"\n")
	if !ours || strictjson.UnmarshalOpen([]byte(text), content) != nil {
		return ErrDamaged
	}
	return nil
}
