package attachment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/retention"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

const (
	keyFile   = "attachments.key"
	indexFile = "index.age"
	suffix    = ".age"
)

// ErrNotFound is returned if a file was never attached, has expired, or belongs to another
// caller.
var ErrNotFound = errors.New("there is no such attachment")

// Options of a store. The zero value is usable.
type Options = retention.Options

// Store is a directory of files, by run. Methods may be called concurrently, also
// by several processes.
type Store struct {
	dir      string
	identity *agekey.Key
	kept     *retention.Keeper

	mu  sync.Mutex
	own map[caller.Owner][]string // IDs of the runs that attached something in this process, oldest first
}

// Set is the files of one run.
type Set struct {
	RunID string       `json:"run_id"`
	Owner caller.Owner `json:"owner"`
	Files []File       `json:"files"`
}

// Open opens the store in dir, creating it at first use, and removes what has
// expired or is too much.
func Open(dir string, opts *Options) (s *Store, err error) {
	s = &Store{dir: dir, own: map[caller.Owner][]string{}}
	if s.kept, s.identity, err = retention.Open(dir, keyFile, opts); err == nil {
		err = s.prune()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the attachments: %w", err)
	}
	return s, nil
}

// runIDForm is the form of a run's ID; another never becomes part of a path.
var runIDForm = lazyregexp.New(`^run_[0-9a-zA-Z]{1,64}$`)

// digestForm is the form of a digest whose digits are the name of a file.
var digestForm = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)

func (s *Store) directory(runID string) (string, error) {
	if !runIDForm.MatchString(runID) {
		return "", fmt.Errorf("%q is not the ID of a run: %w", runID, ErrNotFound)
	}
	return filepath.Join(s.dir, runID), nil
}

// path returns the path of the bytes with a digest. It validates the digest, which may come
// from a file.
func (s *Store) path(runID, digest string) (string, error) {
	dir, err := s.directory(runID)
	if err != nil {
		return "", err
	}
	if !digestForm.MatchString(digest) {
		return "", fmt.Errorf("%q is not a digest", digest)
	}
	return filepath.Join(dir, digest[len("sha256:"):]+suffix), nil
}

// Files returns the files that a run has attached. It returns ErrNotFound if the run has
// attached nothing, or if the files have expired.
func (s *Store) Files(runID string) (Set, error) {
	dir, err := s.directory(runID)
	if err != nil {
		return Set{}, err
	}
	path := filepath.Join(dir, indexFile)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && s.kept.Expired(info.ModTime()) {
		return Set{}, fmt.Errorf("the files of %q: %w", runID, ErrNotFound)
	}
	var set Set
	if err == nil {
		var text []byte
		if text, err = s.unseal(path); err == nil {
			err = strictjson.UnmarshalOpen(text, &set)
		}
	}
	if err != nil {
		return Set{}, fmt.Errorf("reading the files of %q: %w", runID, err)
	}
	return set, nil
}

// Read returns one file of a run with its bytes.
func (s *Store) Read(runID, name string) (File, []byte, error) {
	set, err := s.Files(runID)
	if err != nil {
		return File{}, nil, err
	}
	i := slices.IndexFunc(set.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return File{}, nil, fmt.Errorf("reading %q of %q: %w", name, runID, ErrNotFound)
	}
	content, err := s.content(runID, set.Files[i])
	return set.Files[i], content, err
}

func (s *Store) content(runID string, f File) ([]byte, error) {
	path, err := s.path(runID, f.Digest)
	if err != nil {
		return nil, err
	}
	content, err := s.unseal(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q of %q: %w", f.Name, runID, err)
	}
	return content, nil
}

// OfCaller returns what the runs of a caller have attached while this process lives, the newest first.
func (s *Store) OfCaller(_ context.Context, who caller.Caller) []Set {
	s.mu.Lock()
	ids := slices.Clone(s.own[who.Owner()])
	s.mu.Unlock()
	slices.Reverse(ids)
	var sets []Set
	for _, id := range ids {
		if set, err := s.Files(id); err == nil { // else it has expired
			sets = append(sets, set)
		}
	}
	return sets
}

// maxOwned is how many runs of one owner OfCaller knows, the newest.
const maxOwned = 200

func (s *Store) owns(owner caller.Owner, runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := append(s.own[owner], runID)
	s.own[owner] = slices.Clone(ids[max(len(ids)-maxOwned, 0):])
}

// EndSession forgets which runs a session had. Their files stay until they
// expire, for the command line.
func (s *Store) EndSession(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner := range s.own {
		if owner.Session == session {
			delete(s.own, owner)
		}
	}
}

// write encrypts content into a file that appears whole or not at all.
func (s *Store) write(path string, content []byte) error {
	return store.Write(path, 0o600, func(file *os.File) error {
		sealed, err := age.Encrypt(file, s.identity.Recipient())
		if err != nil {
			return err
		}
		_, err = sealed.Write(content)
		return errors.Join(err, sealed.Close())
	})
}

func (s *Store) unseal(path string) ([]byte, error) {
	file, err := store.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	plain, err := age.Decrypt(file, s.identity)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	_, err = io.Copy(&content, plain)
	return content.Bytes(), err
}

// putIndex writes what a run has attached so far. It sets the time of the directory of all runs for Changed.
func (s *Store) putIndex(set Set) error {
	text, err := json.Marshal(set)
	if err != nil {
		return err
	}
	dir, err := s.directory(set.RunID)
	if err != nil {
		return err
	}
	if err := s.write(filepath.Join(dir, indexFile), text); err != nil {
		return err
	}
	now := time.Now()
	return os.Chtimes(s.dir, now, now)
}
