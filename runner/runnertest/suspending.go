package runnertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/runner"
)

// testSuspend suspends a program in the middle of its work, several times. It continues with its memory, threads,
// open files and outputs, on another connection, and nothing of it is left meanwhile.
func testSuspend(t *testing.T, b *bench) {
	const rounds = 3
	wanted := b.request(`
import socket, threading, time
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
    return s
def receive():
    global s
    while True:
        data = s.recv(10)
        if data: return data.decode()
        s = connect()
memory = bytearray(os.urandom(20 << 20))
before = hash(bytes(memory))
kept = open("/tmp/kept", "w+")
ticks = 0
def tick():
    global ticks
    while True:
        time.sleep(0.001); ticks += 1
threading.Thread(target=tick, daemon=True).start()
s = connect()
began = time.monotonic()
for number in range(3):
    print("asks", number, flush=True)
    kept.write(str(number)); kept.flush()
    s.sendall(b"?")
    print("hears", receive(), file=sys.stderr, flush=True)
    was = ticks
    time.sleep(0.1)
    assert ticks > was
kept.seek(0)
print(kept.read(), before == hash(bytes(memory)), time.monotonic() - began < 600)
`)
	s := b.acquire(t, wanted)
	conn := connected(t, s)
	if err := b.runner.Suspend(t.Context(), s, false); err == nil {
		t.Fatal("a sandbox was suspended that is not paused")
	}
	for number := range rounds {
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if number > 0 {
			// A sandbox goes on after a pause as well.
			if err := errors.Join(s.Pause(t.Context()), s.Resume(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		durable := number == 1
		if err := b.runner.Suspend(t.Context(), s, durable); errors.Is(err, errors.ErrUnsupported) {
			if _, ok := b.Driver.(runner.Saver); ok {
				t.Fatal(err)
			}
			return
		} else if err != nil {
			t.Fatal(err)
		}
		t.Logf("suspended in %v", time.Since(began))
		if load := b.runner.Load(); load.InUse != 0 {
			t.Errorf("%d sandboxes are in use, want none: it is suspended", load.InUse)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v from the connection of a suspended sandbox, want its end", err)
		}
		conn.Close()
		waiting, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := s.Wait(waiting); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for a suspended sandbox: got %v", err)
		}
		cancel()
		if durable {
			s = moved(t, b, s, wanted)
		} else if _, ok := b.runner.Saved(s); ok {
			t.Error("a state that ends with its process can be restored by another one")
		}
		began = time.Now()
		if err := goOn(t, b, s); err != nil {
			t.Fatal(err)
		}
		t.Logf("continued in %v", time.Since(began))
		var err error
		if conn, err = s.Listener().Accept(); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte{'a' + byte(number)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	exit, err := s.Wait(ctx)
	if err := errors.Join(err, s.Drain(ctx)); err != nil {
		t.Fatal(err)
	}
	if got, want := string(s.Stdout().Head), "asks 0\nasks 1\nasks 2\n012 True True\n"; got != want {
		t.Errorf("stdout: got %q, want %q", got, want)
	}
	if got, want := string(s.Stderr().Head), "hears a\nhears b\nhears c\n"; got != want || exit != (runner.Exit{}) {
		t.Errorf("stderr: got %q and exit %+v, want %q", got, exit, want)
	}
	if !b.Unenforced && s.Usage().CPU <= 0 {
		t.Error("no processor time was counted")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	testEndedWhileSuspended(t, b)
}

// goOn lets a suspended sandbox go on.
func goOn(t *testing.T, b *bench, s *runner.Sandbox) error {
	t.Helper()
	slot, err := b.runner.Slot(t.Context(), s)
	if err != nil {
		return err
	}
	return b.runner.Continue(t.Context(), s, slot, func() error { return nil })
}

// moved returns a suspended sandbox as another process restores it.
func moved(t *testing.T, b *bench, s *runner.Sandbox, wanted runner.Request) *runner.Sandbox {
	t.Helper()
	saved, ok := b.runner.Saved(s)
	if !ok {
		t.Fatal("a durable state cannot be restored")
	}
	if err := errors.Join(s.Leave(), s.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]func(*runner.Saved){
		"another version": func(s *runner.Saved) { s.Format += "1" },
		"another key":     func(s *runner.Saved) { s.Key = "" },
		"another path":    func(s *runner.Saved) { s.State = "../" + s.State },
		"no file":         func(s *runner.Saved) { s.State = "sb-000000000000.state" },
	} {
		changed := saved
		wrong(&changed)
		if _, err := b.runner.Restore(changed, wanted); err == nil {
			t.Errorf("%s: a sandbox was restored", name)
		}
	}
	var read runner.Saved
	if err := strictjson.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	restored, err := b.runner.Restore(read, wanted)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { restored.Close() })
	return restored
}

// testEndedWhileSuspended kills and closes suspended sandboxes.
func testEndedWhileSuspended(t *testing.T, b *bench) {
	for _, how := range []string{"kill", "close"} {
		s := b.acquire(t, b.request(`
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
s.recv(1)
`))
		defer connected(t, s).Close()
		if err := errors.Join(s.Pause(t.Context()), b.runner.Suspend(t.Context(), s, false)); err != nil {
			t.Fatal(err)
		}
		end := s.Kill
		if how == "close" {
			end = s.Close
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		if exit, err := s.Wait(t.Context()); err != nil || exit.Signal != 9 {
			t.Errorf("%s: got %+v and %v, want signal 9", how, exit, err)
		}
		if err := goOn(t, b, s); err == nil {
			t.Errorf("%s: a sandbox that was ended went on", how)
		}
		if load := b.runner.Load(); load.InUse != 0 {
			t.Errorf("%s: %d sandboxes are in use, want none", how, load.InUse)
		}
	}
}
