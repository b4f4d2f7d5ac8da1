package runnertest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/runner"
)

func testPause(t *testing.T, b *bench) {
	// One thread answers, one computes for ever. An interruption does not end it.
	s := b.acquire(t, b.request(`
import signal, socket, threading
signal.signal(signal.SIGUSR1, lambda number, frame: None)
def compute():
    while True: pass
threading.Thread(target=compute, daemon=True).start()
s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
while True: s.sendall(s.recv(1))
`))
	if err := s.Pause(t.Context()); err == nil {
		t.Error("a sandbox was paused that no code runs in")
	}
	conn := connected(t, s)
	defer conn.Close()
	echo := func(timeout time.Duration) error {
		_ = conn.SetDeadline(time.Now().Add(timeout))
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	}
	if err := echo(timeout); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(t.Context()); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	before := s.Usage().CPU
	if err := echo(500 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v from a paused sandbox, want no answer", err)
	}
	if spent := s.Usage().CPU - before; spent > 100*time.Millisecond {
		t.Errorf("a paused sandbox took %v of processor time in half a second", spent)
	}
	if err := s.Interrupt(t.Context()); err == nil {
		t.Error("a paused sandbox was interrupted")
	}
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Errorf("got %v after resuming, want the answer", err)
	}
	if err := s.Interrupt(t.Context()); err != nil {
		t.Errorf("interrupting it after resuming: %v", err)
	}
	if err := s.Pause(t.Context()); err != nil {
		t.Errorf("pausing once more: %v", err)
	}
	// A paused sandbox can be ended.
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if _, err := s.Wait(ctx); err != nil {
		t.Errorf("waiting for a sandbox that was killed while paused: %v", err)
	}
}

// testTemplate saves a sandbox as it waits, and starts two others from it.
func testTemplate(t *testing.T, b *bench) {
	saver, ok := b.Driver.(runner.Saver)
	if !ok {
		t.Skip("the driver does not save")
	}
	req := b.request(`
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
print(s.recv(100).decode(), os.urandom(8).hex(), marker, open("/workspace/servers/wrapper.py").read().strip())
open("/workspace/x", "x")
`)
	req.Image.Args[2] = "marker = 'kept'\n" + req.Image.Args[2]
	pooled, err := runner.New(saver, &runner.Options{Logger: b.Logger,
		StateDir: filepath.Join(filepath.Dir(b.dir), "p"), Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pooled.Close(context.WithoutCancel(t.Context()))
	pooled.Warm(req)
	seen := map[string]bool{}
	for _, name := range []string{"first", "second", "third"} {
		s, err := pooled.Acquire(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := s.Listener().Accept(); err == nil {
				_, _ = io.WriteString(conn, name)
				conn.Close()
			}
		}()
		got := strings.Fields(b.finish(t, s).stdout)
		if len(got) != 6 || got[0] != name || got[2] != "kept" || seen[got[1]] {
			t.Errorf("got %q, want %s, new random bytes, kept, and the wrapper", got, name)
			continue
		}
		seen[got[1]] = true
	}
}

// testInterrupt wants the signal at the guest program, which computes, and at no child of it.
func testInterrupt(t *testing.T, b *bench) {
	s := b.acquire(t, b.request(`
import signal, socket
heard = []
signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
go, ready = os.pipe()
child = os.fork()
if child == 0:
    os.close(ready)
    os.read(go, 1)
    os._exit(len(heard))
s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
for _ in range(3):
    before = len(heard)
    s.sendall(b"x")
    while len(heard) == before: pass
os.close(ready)
print(heard, os.waitpid(child, 0)[1])
`))
	go func() {
		conn, err := s.Listener().Accept()
		if err != nil {
			return // the test fails on what is missing
		}
		defer conn.Close()
		for range 3 {
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				return
			}
			if err := s.Interrupt(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}()
	if got := b.finish(t, s); got.stdout != "[10, 10, 10] 0\n" {
		t.Errorf("got %+v, want three signals, and none at the child", got)
	}
}
