package images_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/images"
)

// A file that sandboxes run from and that was changed is not used (issue 24: start-up
// integrity read the directory, and sandboxes ran from the file).
func TestFileSystem(t *testing.T) {
	rootFS := filepath.Join(t.TempDir(), "rootfs")
	if err := os.MkdirAll(rootFS, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(rootFS, "guest.py"), bytes.Repeat([]byte("print(1)\n"), 1000),
		0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := images.OpenFileSystem(rootFS); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before it is made: got %v, want fs.ErrNotExist", err)
	}
	if err := images.MakeFileSystem(rootFS); err != nil {
		t.Fatal(err)
	}
	check := func() error {
		file, digest, err := images.OpenFileSystem(rootFS)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		return images.CheckFileSystem(file, digest)
	}
	if err := check(); err != nil {
		t.Fatalf("as it was made: got %v, want nil", err)
	}
	path := rootFS + ".erofs"
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string][]byte{
		"one byte of the code": bytes.Replace(bytes.Clone(made), []byte("print(1)"), []byte("print(2)"), 1),
		"a byte behind it":     append(bytes.Clone(made), 0),
		"half of it":           made[:len(made)/2],
		"nothing":              nil,
	} {
		if err := errors.Join(os.Remove(path), os.WriteFile(path, changed, 0o644)); err != nil {
			t.Fatal(err)
		}
		var failed *images.FileSystemError
		if err := check(); !errors.As(err, &failed) || failed.Path != path {
			t.Errorf("%s: got %v, want a FileSystemError with the path", name, err)
		}
	}
	// It is made again from the directory, with the same bytes.
	if err := errors.Join(images.MakeFileSystem(rootFS), check()); err != nil {
		t.Error(err)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, made) {
		t.Errorf("made again: got %d bytes, %v, want the same bytes", len(again), err)
	}
}
