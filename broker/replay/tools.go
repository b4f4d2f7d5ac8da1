package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/store"
)

// toolsDigest is the form of a snapshot's digest; another names no file.
var toolsDigest = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)

// toolsPath is the file with the tools of a snapshot, which recordings share.
func (s *Store) toolsPath(digest string) (path string, ok bool) {
	if !toolsDigest.MatchString(digest) {
		return "", false
	}
	return filepath.Join(s.dir, "tools_"+strings.TrimPrefix(digest, "sha256:")+suffix), true
}

// keepTools keeps the tools that a recorded run saw, unless they are kept. Those of
// the newest recording are the newest file, so that they outlive it.
func (s *Store) keepTools(digest string, tools func() ([]byte, error)) error {
	path, ok := s.toolsPath(digest)
	if !ok || tools == nil {
		return nil
	}
	now := s.kept.Now()
	if err := os.Chtimes(path, now, now); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := tools()
	if err != nil {
		return err
	}
	sealed, err := s.seal(text)
	if err != nil {
		return err
	}
	return errors.Join(store.WriteFile(path, sealed, 0o600), s.wrote(int64(len(sealed))))
}

// seal compresses and encrypts.
func (s *Store) seal(text []byte) ([]byte, error) {
	var out bytes.Buffer
	sealed, err := age.Encrypt(&out, s.identity.Recipient())
	if err != nil {
		return nil, err
	}
	packed := gzip.NewWriter(sealed)
	_, err = packed.Write(text)
	err = errors.Join(err, packed.Close(), sealed.Close())
	return out.Bytes(), err
}

// loadTools returns the tools of a snapshot; nil when none are kept, as by older versions.
func (s *Store) loadTools(digest string) ([]byte, error) {
	path, ok := s.toolsPath(digest)
	if !ok {
		return nil, nil
	}
	f, err := store.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plain, err := age.Decrypt(f, s.identity)
	if err == nil {
		plain, err = unpack(plain)
	}
	if err != nil {
		return nil, fmt.Errorf("the recorded tools: %w", err)
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		return nil, errors.New("the recorded tools are damaged")
	}
	return text, nil
}
