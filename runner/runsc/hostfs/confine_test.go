package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/lisafs"
)

// Issue 30: the threads that handle the requests of a sandbox open no file outside of its directory and no connection.
// Other threads of the process can.
func TestRequestsAreConfined(t *testing.T) {
	if !Confined() {
		t.Skip("this kernel has no Landlock")
	}
	top := t.TempDir()
	mount, outside := filepath.Join(top, "mount"), filepath.Join(top, "outside")
	for _, path := range []string{filepath.Join(mount, "sub"), outside} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{mount, outside} {
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	read := func(path string) func() error {
		return func() error { _, err := os.ReadFile(path); return err }
	}
	write := func(path string) func() error {
		return func() error { return os.WriteFile(path, []byte("changed"), 0o600) }
	}
	descriptor, err := os.Open(filepath.Join(outside, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer descriptor.Close()
	in, out := filepath.Join(mount, "file"), filepath.Join(outside, "file")
	connect := func() error {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		return unix.Connect(s, &unix.SockaddrInet4{Port: listener.Addr().(*net.TCPAddr).Port,
			Addr: [4]byte{127, 0, 0, 1}})
	}
	for _, c := range []struct {
		name             string
		act              func() error
		writable, denied bool
	}{
		{"reading a file", read(in), false, false},
		{"reading a file outside", read(out), false, true},
		{"reading a file outside, writable", read(out), true, true},
		{"reading a file outside by its descriptor", read(fmt.Sprint("/proc/self/fd/", descriptor.Fd())), true, true},
		{"listing a directory outside", func() error { _, err := os.ReadDir(outside); return err }, false, true},
		{"changing a read-only file", write(in), false, true},
		{"making a file in a read-only directory", write(filepath.Join(mount, "new")), false, true},
		{"changing a file", write(in), true, false},
		{"making a file outside", write(filepath.Join(outside, "new")), true, true},
		{"moving a file to another directory", func() error {
			return os.Rename(in, filepath.Join(mount, "sub", "file"))
		}, true, false},
		{"moving a file outside", func() error {
			return os.Rename(filepath.Join(mount, "sub", "file"), filepath.Join(outside, "moved"))
		}, true, true},
		{"taking a file from outside", func() error { return os.Link(out, filepath.Join(mount, "taken")) }, true, true},
		{"removing a file outside", func() error { return os.Remove(out) }, true, true},
		{"making a FIFO", func() error { return unix.Mkfifo(filepath.Join(mount, "fifo"), 0o600) }, true, true},
		{"connecting", connect, true, landlockABI() >= 4},
	} {
		err := handled(t, mount, c.writable, c.act)
		denied := errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EXDEV) // the latter for links
		if denied != c.denied || !denied && err != nil {
			t.Errorf("%s: got %v, want denied: %v", c.name, err, c.denied)
		}
	}
	if err := read(out)(); err != nil {
		t.Errorf("another thread: %v", err)
	}
}

// handled calls act as the handler of a request for a directory.
func handled(t *testing.T, directory string, writable bool, act func() error) error {
	t.Helper()
	root, err := open(directory)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	limits, err := confine(root, writable)
	if err != nil {
		t.Fatal(err)
	}
	defer limits.close()
	handlers := []lisafs.RPCHandler{nil, func(*lisafs.Connection, lisafs.Communicator, uint32) (uint32, error) {
		return 0, act()
	}}
	limits.wrap(handlers)
	answered := make(chan error)
	go func() {
		_, err := handlers[1](nil, nil, 0)
		answered <- err
	}()
	return <-answered
}
