package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Store keeps sign-ins in a directory: a file for each principal and server, encrypted
// with age (age-encryption.org/v1) to a key of this machine. Several processes may use
// one directory. A Store is safe for concurrent use.
type Store struct {
	directory string
	key       func() (*agekey.Key, error)
}

// maxRecord bounds a file, in bytes.
const maxRecord = 1 << 20

// keyFile is the name of the key in the directory of keys.
const keyFile = "oauth.key"

// NewStore returns a store in directory whose key is in keys. Both directories are
// created on first use.
func NewStore(directory, keys string) *Store {
	return &Store{directory: directory, key: sync.OnceValues(func() (*agekey.Key, error) {
		return agekey.LoadOrCreate(filepath.Join(keys, keyFile))
	})}
}

// path returns the file of one sign-in. Its name is a hash and reveals nothing.
func (s *Store) path(principal, serverID, url string) string {
	digest := sha256.Sum256([]byte(strings.Join([]string{principal, serverID, url}, "\x00")))
	return filepath.Join(s.directory, hex.EncodeToString(digest[:16])+".age")
}

// version identifies the content of a file without reading it.
type version struct {
	inode  uint64
	change int64
	size   int64
}

// version returns the version of a file, or the zero value if the file does not exist.
func (s *Store) version(path string) version {
	info, err := os.Lstat(path)
	if err != nil {
		return version{}
	}
	v := version{change: info.ModTime().UnixNano(), size: info.Size()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		v.inode = stat.Ino
	}
	return v
}

// load reads a sign-in. It returns nil if the file does not exist.
func (s *Store) load(path string) (*record, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a kept sign-in: %w", err)
	}
	defer file.Close()
	sealed, err := io.ReadAll(io.LimitReader(file, maxRecord+1))
	if err != nil {
		return nil, fmt.Errorf("reading a kept sign-in: %w", err)
	}
	key, err := s.key()
	if err != nil {
		return nil, fmt.Errorf("reading a kept sign-in: %w", err)
	}
	var r record
	plain, err := agekey.Open(sealed, key)
	if err == nil && strictjson.UnmarshalOpen(plain, &r) != nil { // its error would quote the text
		err = errors.New("it does not have the form of a sign-in")
	}
	if err == nil && r.Format != recordFormat {
		err = fmt.Errorf("it has the format %d, and this Airlock reads %d", r.Format, recordFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("the kept sign-in %q cannot be read: %w", path, err)
	}
	return &r, nil
}

// SignIn describes a kept sign-in.
type SignIn struct {
	Principal string
	ServerID  string
	Issuer    string
	Scopes    []string
	Began     time.Time // when the person signed in; Renewed for sign-ins of older versions
	Renewed   time.Time // when its tokens were last issued, which a use of the sign-in causes
	Over      string    // why the person has to sign in again; empty if it can be used
}

// List returns the kept sign-ins of all principals, in no particular order.
func (s *Store) List() (list []SignIn, err error) {
	paths, err := filepath.Glob(filepath.Join(s.directory, "*.age"))
	for _, path := range paths {
		r, loadErr := s.load(path)
		if r != nil {
			one := SignIn{r.Principal, r.ServerID, r.Issuer, r.Tokens.Scopes, r.Began, r.Changed, r.Over}
			if one.Began.IsZero() {
				one.Began = one.Renewed
			}
			list = append(list, one)
		}
		err = errors.Join(err, loadErr)
	}
	return list, err
}

// save replaces a sign-in durably.
func (s *Store) save(path string, r *record) error {
	key, err := s.key()
	if err != nil {
		return fmt.Errorf("keeping a sign-in: %w", err)
	}
	plain, err := json.Marshal(r)
	if err != nil {
		return errors.New("keeping a sign-in: it has no JSON form")
	}
	sealed, err := agekey.Seal(key.Recipient(), plain)
	if err == nil {
		err = os.MkdirAll(s.directory, 0o700)
	}
	if err == nil {
		err = store.WriteFile(path, sealed, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keeping a sign-in: %w", err)
	}
	return nil
}

// remove deletes a sign-in, which may be missing.
func (s *Store) remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a kept sign-in: %w", err)
	}
	return nil
}

// lock waits until no other process changes the sign-in.
func (s *Store) lock(ctx context.Context, path string) (*store.Lock, error) {
	if err := os.MkdirAll(s.directory, 0o700); err != nil {
		return nil, fmt.Errorf("keeping a sign-in: %w", err)
	}
	return store.Acquire(ctx, strings.TrimSuffix(path, ".age")+".lock", store.Exclusive)
}
