package join_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/join"
)

// listener binds a socket at the path of its first argument, becomes the user of its second one, and
// prints what the first client sends.
const listener = `
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
if int(sys.argv[2]) != os.geteuid():
    os.setuid(int(sys.argv[2]))
s.listen()
print("listening", flush=True)
c, _ = s.accept()
print(c.recv(1000), flush=True)
`

// socketPath returns the path of the daemon's socket in a new state directory.
func socketPath(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "alk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("AIRLOCK_HOME", home)
	path, err := join.Path()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(path)) })
	return path
}

// If another program listens on the socket, the client sends it nothing: neither the digest of the
// configuration nor a program.
func TestAnotherProgramIsToldNothing(t *testing.T) {
	for name, test := range map[string]struct {
		user    int
		purpose string
	}{
		"another program":                    {os.Geteuid(), join.PurposeRun},
		"another program, for a host":        {os.Geteuid(), join.PurposeHost},
		"another user's":                     {65534, join.PurposeRun},
		"another user's, asked how it is":    {65534, join.PurposeStatus},
		"another user's, to be asked to end": {65534, join.PurposeStop},
	} {
		t.Run(name, func(t *testing.T) {
			path := socketPath(t)
			if test.user != os.Geteuid() && os.Geteuid() != 0 {
				t.Skip("needs root, to be another user")
			}
			cmd := exec.Command("/usr/bin/python3", "-c", listener, path, strconv.Itoa(test.user))
			said, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill() // it may have ended
				_ = cmd.Wait()         // only its output matters
			}()
			in := bufio.NewReader(said)
			if line, err := in.ReadString('\n'); line != "listening\n" {
				t.Fatalf("got %q, %v", line, err)
			}
			var refused *join.RefusedError
			if _, err := join.Dial(join.Hello{Purpose: test.purpose, Config: "digest"}); !errors.As(err, &refused) {
				t.Fatalf("got %v, want a refusal", err)
			}
			if line, err := in.ReadString('\n'); line != "b''\n" {
				t.Errorf("it was told %s (%v), want nothing", line, err)
			}
		})
	}
}

// If no process listens, Dial returns ErrNone, whatever file is at the path of the socket.
func TestThereIsNoDaemon(t *testing.T) {
	path := socketPath(t)
	for name, prepare := range map[string]func() error{
		"nothing": func() error { return nil },
		"a file":  func() error { return os.WriteFile(path, nil, 0o600) },
		"a socket that is left": func() error {
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			return errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd))
		},
	} {
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		if _, err := join.Dial(join.Hello{Purpose: join.PurposeRun}); !errors.Is(err, join.ErrNone) {
			t.Errorf("%s: got %v, want that there is no daemon", name, err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AIRLOCK_HOME", "/"+strings.Repeat("long/", 40))
	if os.Geteuid() != 0 { // the path of the socket in this directory is too long
		if _, err := join.Dial(join.Hello{}); !errors.Is(err, join.ErrNone) {
			t.Errorf("a long path: got %v, want that there is no daemon", err)
		}
	}
}

// Bytes that were read can be put back, and reading continues after a deadline.
func TestReadAgain(t *testing.T) {
	here, there := pair(t)
	conn := join.NewConn(here)
	if _, err := io.WriteString(there, "one\ntw"); err != nil {
		t.Fatal(err)
	}
	one, err := conn.ReadLine()
	if string(one) != "one\n" || err != nil {
		t.Fatalf("got %q, %v", one, err)
	}
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	part, err := conn.ReadLine()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %q, %v, want the time limit", part, err)
	}
	conn.Unread(append(one, part...))
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(there, "o\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one\n", "two\n"} {
		if line, err := conn.ReadLine(); string(line) != want || err != nil {
			t.Errorf("got %q, %v, want %q", line, err, want)
		}
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := there.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d, %v, want the end", n, err)
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	if line, err := conn.ReadLine(); len(line) != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("got %q, %v, want the end", line, err)
	}
}

// pair returns two ends of a connection, which end with the test.
func pair(t *testing.T) (here, there *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	here, there = os.NewFile(uintptr(fds[0]), "here"), os.NewFile(uintptr(fds[1]), "there")
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}
