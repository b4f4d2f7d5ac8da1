package pins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// ErrChangedMeanwhile is returned if a definition is accepted against a pin that was
// replaced in the meantime: the person has seen an outdated difference.
var ErrChangedMeanwhile = errors.New("the pin has changed meanwhile")

// File is a book of pins in a file, which several Airlock processes may share:
// each operation locks, reads, writes and unlocks. Its methods may be called
// concurrently.
type File struct{ path string }

// NewFile names the file; it need not exist, but its directory will be made.
func NewFile(path string) *File { return &File{path: path} }

// Check is Book.Check on the file. It waits for other processes until ctx ends.
// A file that cannot be read, or whose pins do not fit their digests, is an
// error: to begin anew would accept every change that was made.
func (f *File) Check(ctx context.Context, servers []catalog.Server, now time.Time) (Report, error) {
	var report Report
	err := f.edit(ctx, func(book *Book) (bool, error) {
		report = book.Check(servers, now)
		return len(report.New)+len(report.Released) > 0, nil
	})
	return report, err
}

// Quarantine is Book.Quarantine on the file.
func (f *File) Quarantine(ctx context.Context, serverID string) error {
	return f.edit(ctx, func(book *Book) (bool, error) {
		book.Quarantine(serverID)
		return true, nil
	})
}

// Show is Book.Show on the file.
func (f *File) Show(ctx context.Context, changes []Change) error {
	return f.edit(ctx, func(book *Book) (bool, error) {
		book.Show(changes)
		return len(changes) > 0, nil
	})
}

// Accept is Book.Accept on the file; ErrChangedMeanwhile takes the place of false.
func (f *File) Accept(ctx context.Context, changes []Change, now time.Time) error {
	return f.edit(ctx, func(book *Book) (bool, error) {
		if !book.Accept(changes, now) {
			return false, ErrChangedMeanwhile
		}
		return true, nil
	})
}

// edit calls change with the book under the lock, and writes the book if change returns true.
func (f *File) edit(ctx context.Context, change func(*Book) (write bool, err error)) (err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("pins in %q: %w", f.path, err)
	}
	lock, err := store.Acquire(ctx, f.path+".lock", store.Exclusive)
	if err != nil {
		return fmt.Errorf("pins in %q: %w", f.path, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	book, err := f.read()
	if err != nil {
		return fmt.Errorf("pins in %q: %w", f.path, err)
	}
	write, err := change(book)
	if err != nil || !write {
		return err
	}
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false) // definitions stay as they are
	if err := enc.Encode(book); err != nil {
		return fmt.Errorf("pins in %q: %w", f.path, err)
	}
	if err := store.WriteFile(f.path, raw.Bytes(), 0o600); err != nil {
		return fmt.Errorf("pins in %q: %w", f.path, err)
	}
	return nil
}

func (f *File) read() (*Book, error) {
	raw, err := store.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Book{}, nil
	}
	if err != nil {
		return nil, err
	}
	var book Book
	if err := strictjson.UnmarshalOpen(raw, &book); err != nil {
		return nil, fmt.Errorf("the file is damaged: %w", err)
	}
	if bad, ok := book.valid(); !ok {
		return nil, fmt.Errorf("the file is damaged: the pin of tool %q of server %q does not have its digest",
			bad.ToolName, bad.ServerID)
	}
	return &book, nil
}
