package images

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/images/layer"
	"github.com/airlock-mcp/airlock/internal/erofs"
	"github.com/airlock-mcp/airlock/internal/store"
)

// The root file system of an image, as one file that gVisor's kernel reads, and the
// digest of that file are beside the directory that they were made from. Equal
// directories make equal files.
const (
	fileSystemSuffix = ".erofs"
	digestSuffix     = ".erofs.sum" // earlier versions have theirs in .erofs.digest
)

// A FileSystemError reports that the file that sandboxes run from is not what was made
// from the image.
type FileSystemError struct{ Path string }

// Error names the file.
func (e *FileSystemError) Error() string {
	return fmt.Sprintf("the root file system %q has been changed since it was made", e.Path)
}

// Hint is what an operator types.
func (e *FileSystemError) Hint() string {
	return "find out who changed it; then remove the file, and Airlock makes it again from the image"
}

// MakeFileSystem writes the directory rootFS as one file beside it, and then the digest
// of that file. Each appears complete or not at all.
func MakeFileSystem(rootFS string) error {
	hash, name := layer.NewHash()
	err := store.Write(rootFS+fileSystemSuffix, 0o444, func(file *os.File) error {
		return erofs.Write(io.MultiWriter(file, hash), rootFS)
	})
	if err != nil {
		return err
	}
	return store.WriteFile(rootFS+digestSuffix, []byte(digestText(name, hash)+"\n"), 0o444)
}

// OpenFileSystem opens the file that MakeFileSystem wrote and returns the digest that was
// recorded. The caller must compare them with CheckFileSystem before it uses the file. The
// error is an fs.ErrNotExist if either does not exist.
func OpenFileSystem(rootFS string) (file *os.File, digest string, err error) {
	if digest, err = FileSystemDigest(rootFS); err != nil {
		return nil, "", err
	}
	file, err = os.Open(rootFS + fileSystemSuffix)
	return file, digest, err
}

// FileSystemDigest returns the digest that was recorded for the file of rootFS.
func FileSystemDigest(rootFS string) (string, error) {
	text, err := os.ReadFile(rootFS + digestSuffix)
	return strings.TrimSpace(string(text)), err
}

// CheckFileSystem reads the whole file; the error is a *FileSystemError if it does not
// have the digest.
func CheckFileSystem(file *os.File, digest string) error {
	hash, name := layer.NewHash()
	if _, err := io.Copy(hash, io.NewSectionReader(file, 0, 1<<62)); err != nil {
		return fmt.Errorf("reading %q: %w", file.Name(), err)
	}
	if digestText(name, hash) != digest {
		return &FileSystemError{file.Name()}
	}
	return nil
}

// verifyFileSystem verifies that the file beside rootFS, if it would be used, is equal to the
// file that is made from rootFS, which the caller has verified.
func verifyFileSystem(ctx context.Context, rootFS string) error {
	file, digest, err := OpenFileSystem(rootFS)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is made again before it is used
	}
	if err != nil {
		return err
	}
	defer file.Close()
	hash, name := layer.NewHash()
	var got []byte
	if err := erofs.Write(writerFunc(func(want []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		got = slices.Grow(got[:0], len(want))[:len(want)]
		n, err := io.ReadFull(file, got)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		if !bytes.Equal(got[:n], want) {
			return 0, &FileSystemError{file.Name()}
		}
		return hash.Write(want)
	}), rootFS); err != nil {
		return err
	}
	if _, err := io.ReadFull(file, make([]byte, 1)); !errors.Is(err, io.EOF) {
		return cmp.Or(err, error(&FileSystemError{file.Name()}))
	}
	if digest != digestText(name, hash) {
		return &FileSystemError{rootFS + digestSuffix}
	}
	return nil
}

type writerFunc func([]byte) (int, error)

// Write calls f.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func digestText(name string, sum hash.Hash) string {
	return name + ":" + hex.EncodeToString(sum.Sum(nil))
}
