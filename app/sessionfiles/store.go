package sessionfiles

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Store holds the files of all sessions of this process. Methods may be called
// concurrently, but for Close.
type Store struct {
	dir    string // of this process
	held   *store.Lock
	sealer cipher.AEAD
	limits Limits
	size   int64 // the most bytes of all sessions
	homes  Homes

	mu       sync.Mutex // guards all below
	sessions map[caller.Owner]*session
	bytes    int64 // of all chunks on disk
	next     uint64
}

// session is the files of one owner. The store's lock guards it.
type session struct{ files map[string]*file }

// file is the content of one path. It never changes; another one takes its place.
type file struct {
	chunks []chunk
	bytes  int64
	users  int // the session, and runs that are being given it
}

// chunk is an encrypted part of a file on disk.
type chunk struct {
	name  string
	bytes int64
}

// Homes lets the nodes of a cluster know which of them has the files of a session. *cluster.Node implements it and
// documents the contract.
type Homes interface {
	Keep(ctx context.Context, session string) error
	Release(ctx context.Context, session string) error
}

const (
	lockFile = "lock"
	prefix   = "process-"
)

// Open makes a directory for this process in dir, which is created at first use,
// and removes those of processes that have died. size is the most that the files
// of all sessions take, in bytes. homes learns of sessions with files.
func Open(ctx context.Context, dir string, limits Limits, size int64, homes Homes) (_ *Store, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("opening the files of sessions: %w", err)
		}
	}()
	var key [32]byte
	rand.Read(key[:]) // never fails: crypto/rand aborts the program instead
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	s := &Store{sealer: sealer, limits: limits, size: size, homes: homes, sessions: map[caller.Owner]*session{}}
	err = locked(ctx, dir, func() error {
		if s.dir, err = os.MkdirTemp(dir, prefix); err != nil {
			return err
		}
		s.held, err = store.TryHold(s.dir, store.Exclusive)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Sweep removes the files of processes that have died.
func Sweep(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return locked(ctx, dir, func() error { return nil })
}

// locked runs do while no other process looks through the directory, after having
// removed what is left of dead ones.
func locked(ctx context.Context, dir string, do func() error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := store.Acquire(ctx, filepath.Join(dir, lockFile), store.Exclusive)
	if err != nil {
		return err
	}
	return errors.Join(sweep(dir), do(), lock.Release())
}

func sweep(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range left {
		held, err := store.TryHold(path, store.Exclusive)
		if errors.Is(err, store.ErrLocked) {
			continue // its process lives
		}
		if err == nil {
			err = errors.Join(os.RemoveAll(path), held.Release())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Close removes the files of all sessions. Runs must be over.
func (s *Store) Close() error {
	return errors.Join(os.RemoveAll(s.dir), s.held.Release())
}

// EndSession removes the files of a session.
func (s *Store) EndSession(ctx context.Context, id string) error {
	found, err := s.endSession(id)
	if found {
		err = errors.Join(err, s.homes.Release(ctx, id))
	}
	return err
}

func (s *Store) endSession(id string) (found bool, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for owner, session := range s.sessions {
		if owner.Session != id {
			continue
		}
		for _, f := range session.files {
			errs = append(errs, s.releaseLocked(f))
		}
		delete(s.sessions, owner)
		found = true
	}
	return found, errors.Join(errs...)
}

// releaseLocked ends one use of a file; with the last one it is removed.
func (s *Store) releaseLocked(f *file) error {
	if f.users--; f.users > 0 {
		return nil
	}
	var errs []error
	for _, c := range f.chunks {
		s.bytes -= c.bytes
		errs = append(errs, os.Remove(filepath.Join(s.dir, c.name)))
	}
	return errors.Join(errs...)
}

// write puts data on disk, encrypted.
func (s *Store) write(data []byte) (chunk, error) {
	s.mu.Lock()
	if s.bytes+int64(len(data)) > s.size {
		s.mu.Unlock()
		return chunk{}, &LimitError{"the files of all sessions take as much as they may (session.size)"}
	}
	s.bytes += int64(len(data))
	s.next++
	c := chunk{strconv.FormatUint(s.next, 10), int64(len(data))}
	s.mu.Unlock()
	// The name is sealed in, so that no chunk passes for another.
	if err := os.WriteFile(filepath.Join(s.dir, c.name), s.sealer.Seal(nil, nil, data, []byte(c.name)),
		0o600); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return chunk{}, errors.Join(err, s.releaseLocked(&file{chunks: []chunk{c}}))
	}
	return c, nil
}

func (s *Store) read(c chunk) ([]byte, error) {
	sealed, err := store.ReadFile(filepath.Join(s.dir, c.name))
	if err != nil {
		return nil, err
	}
	return s.sealer.Open([]byte{}, nil, sealed, []byte(c.name)) // empty, not nil: JSON distinguishes them
}
