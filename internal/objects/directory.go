package objects

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/internal/store"
)

// directory is a store in a directory, which may be on shared storage.
type directory struct{ root string }

func (d directory) put(_ context.Context, name string, content []byte) error {
	path := filepath.Join(d.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return store.WriteFile(path, content, 0o600)
}

func (d directory) get(_ context.Context, name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(d.root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f)
}

// readBounded reads an object.
func readBounded(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxObject+1))
	if err == nil && len(content) > maxObject {
		return nil, ErrTooLarge
	}
	return content, err
}

func (d directory) delete(_ context.Context, name string) error {
	err := os.Remove(filepath.Join(d.root, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
