package store_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/store"
)

// Issue 23: a named pipe or a device in place of a file does not keep its reader waiting.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe, socket, link, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket"), filepath.Join(dir, "link"),
		filepath.Join(dir, "file")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(os.Symlink(pipe, link), os.WriteFile(file, []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, socket, link, "/dev/zero", "/dev/tty"} {
		if _, err := store.ReadFile(path); err == nil || path != "/dev/tty" && !errors.Is(err, store.ErrNotRegular) {
			t.Errorf("%s: got %v, want ErrNotRegular", path, err)
		}
	}
	if lock, err := store.TryAcquire(pipe, store.Exclusive); err == nil {
		t.Errorf("a pipe is a lock: %v", lock.Release())
	}
	if _, err := store.ReadFile(dir); !errors.Is(err, unix.EISDIR) {
		t.Errorf("a directory: got %v, want EISDIR", err)
	}
	if text, err := store.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := store.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
}
