package runnertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/runner"
)

func testLife(t *testing.T, b *bench) {
	got := b.run(t, b.request(`print("out"); print("err", file=sys.stderr)`))
	if got.stdout != "out\n" || got.stderr != "err\n" || got.exit != (runner.Exit{}) {
		t.Errorf("got %+v, want out, err and status 0", got)
	}
}

func testExits(t *testing.T, b *bench) {
	tests := []struct {
		name, script string
		want         runner.Exit
	}{
		{"status 3", "sys.exit(3)", runner.Exit{Code: 3}},
		{"status 128", "sys.exit(128)", runner.Exit{Code: 128}}, // as gVisor's shim has it for a kernel that it cannot ask
		{"a status as of a signal", "os._exit(137)", runner.Exit{Code: 137}},
		{"an exception", "1/0", runner.Exit{Code: 1}},
		{"a signal to itself", "import signal; os.kill(os.getpid(), signal.SIGKILL)", runner.Exit{Code: 137, Signal: 9}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := b.run(t, b.request(test.script)).exit
			if test.want.Signal != 0 {
				got.Code = test.want.Code // not every driver knows both
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func testIdentity(t *testing.T, b *bench) {
	b.script(t, `
status = dict(l.split(":", 1) for l in open("/proc/self/status") if ":" in l)
print(os.getresuid(), os.getresgid(), os.getgroups(), os.getcwd(), os.uname().nodename)
print(*(k + "=" + str(int(status[k], 16)) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")))
import ctypes
print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0)) # PR_GET_NO_NEW_PRIVS
`, "(65532, 65532, 65532) (65532, 65532, 65532) [] /workspace sandbox\nCapInh=0 CapPrm=0 CapEff=0 CapBnd=0 CapAmb=0\n1")
	req := b.request(`print(sorted(k for k in os.environ if k != "LC_CTYPE"))`)
	req.Image.Env = []string{"PATH=/usr/bin", "HOME=/workspace"}
	if got := b.run(t, req).stdout; got != "['HOME', 'PATH']\n" {
		t.Errorf("environment: got %s, want only HOME and PATH", got)
	}
}

func testFiles(t *testing.T, b *bench) {
	b.script(t, `
def probe(path):
    try:
        with open(path, "w") as f: f.write("x")
        return "written"
    except OSError as e:
        return "refused"
for path in ("/workspace/x", "/tmp/x", "/dev/shm/x", "/x", "/usr/x", "/etc/passwd", "/dev/x",
             "/workspace/servers/x", "/workspace/servers/wrapper.py", "/run/airlock/x", "/sys/x"):
    print(path, probe(path))
print(open("/workspace/servers/wrapper.py").read().strip(), os.listdir("/run/airlock"))
`, `/workspace/x written
/tmp/x written
/dev/shm/x written
/x refused
/usr/x refused
/etc/passwd refused
/dev/x refused
/workspace/servers/x refused
/workspace/servers/wrapper.py refused
/run/airlock/x refused
/sys/x refused
x = 1 ['broker.sock']`)
}

func testNetwork(t *testing.T, b *bench) {
	b.script(t, `
import socket
print([n for _, n in socket.if_nameindex()])
for family, address in ((socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_INET6, ("2606:4700::1111", 53))):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            s = socket.socket(family, kind); s.settimeout(2); s.connect(address); print("connected", address)
        except OSError:
            pass
`, "['lo']")
}

func testSocket(t *testing.T, b *bench) {
	s := b.acquire(t, b.request(`
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
s.sendall(b"ping\n"); print(s.recv(100).decode().strip())
`))
	go func() {
		conn, err := s.Listener().Accept()
		if err != nil {
			return // the test fails on what is missing
		}
		defer conn.Close()
		buffer := make([]byte, len("ping\n"))
		if _, err := io.ReadFull(conn, buffer); err == nil && string(buffer) == "ping\n" {
			_, _ = io.WriteString(conn, "pong\n")
		}
	}()
	if got := b.finish(t, s); got.stdout != "pong\n" {
		t.Errorf("got %+v, want pong", got)
	}
}

func testPause(t *testing.T, b *bench) {
	// One thread answers, one computes for ever.
	s := b.acquire(t, b.request(`
import socket, threading
def compute():
    while True: pass
threading.Thread(target=compute, daemon=True).start()
s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
while True: s.sendall(s.recv(1))
`))
	if err := s.Pause(t.Context()); err == nil {
		t.Error("a sandbox was paused that no code runs in")
	}
	if err := s.Go(); err != nil {
		t.Fatal(err)
	}
	conn, err := s.Listener().Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	echo := func(timeout time.Duration) error {
		_ = conn.SetDeadline(time.Now().Add(timeout))
		if _, err := conn.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	}
	if err := echo(10 * time.Second); err != nil {
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
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Errorf("got %v after resuming, want the answer", err)
	}
	if err := s.Pause(t.Context()); err != nil {
		t.Errorf("pausing once more: %v", err)
	}
	// What is paused can be ended.
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := s.Wait(ctx); err != nil {
		t.Errorf("waiting for a sandbox that was killed while paused: %v", err)
	}
}

// testFlush wants what was written before the guest said so, at once.
func testFlush(t *testing.T, b *bench) {
	s := b.acquire(t, b.request(`
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/airlock/broker.sock")
for round in range(20):
    os.write(1, b"o" * 20000); os.write(2, b"\xff" * 300)
    s.sendall(b"x"); s.recv(1)
`))
	if err := s.Go(); err != nil {
		t.Fatal(err)
	}
	conn, err := s.Listener().Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for round := range int64(20) {
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		s.Flush()
		if out, errs := s.Stdout().Total, s.Stderr().Total; out != 20000*(round+1) || errs != 300*(round+1) {
			t.Fatalf("round %d: got %d and %d bytes, want %d and %d", round, out, errs, 20000*(round+1), 300*(round+1))
		}
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
}

func testMemory(t *testing.T, b *bench) {
	got := b.run(t, b.request(`
hog = []
while True: hog.append(bytearray(os.urandom(1 << 20)))
`))
	if got.exit.Reason != runner.ReasonMemory {
		t.Errorf("exit: got %+v, want the reason memory\nstderr: %s", got.exit, got.stderr)
	}
	most := int64(257 << 20)
	if b.Unenforced { // the memory is read from time to time, later where the machine is busy
		most = 512 << 20
	}
	if peak := got.usage.PeakMemory; peak < 128<<20 || peak > most {
		t.Errorf("peak: got %d, want near 256 MiB", peak)
	}
}

// testMemoryOfChildren spreads memory over processes that each take little.
func testMemoryOfChildren(t *testing.T, b *bench) {
	got := b.run(t, b.request(`
for _ in range(20):
    if os.fork() == 0:
        hog = [os.urandom(1 << 20) for _ in range(32)]
        __import__("time").sleep(60)
__import__("time").sleep(60)
`))
	if got.exit.Reason != runner.ReasonMemory {
		t.Errorf("exit: got %+v, want the reason memory\nstderr: %s", got.exit, got.stderr)
	}
}

// testMemoryOfFiles writes files, which lie in memory and count as such.
func testMemoryOfFiles(t *testing.T, b *bench) {
	req := b.request(`
hog = [os.urandom(1 << 20) for _ in range(100)]
for place in ("/tmp", "/workspace", "/dev/shm"):
    with open(place + "/file", "wb") as file:
        try:
            while True: file.write(os.urandom(1 << 20))
        except OSError: pass
__import__("time").sleep(60)
`)
	req.Limits.Disk = req.Limits.Memory
	if got := b.run(t, req); got.exit.Reason != runner.ReasonMemory {
		t.Errorf("exit: got %+v, want the reason memory\nstderr: %s", got.exit, got.stderr)
	}
}

func testForks(t *testing.T, b *bench) {
	req := b.request(`
while True:
    try: os.fork()
    except OSError: pass
`)
	req.Limits.PIDs = 32
	s := b.acquire(t, req)
	if err := s.Go(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if exit, err := s.Wait(ctx); err != nil || exit.Reason != runner.ReasonProcesses {
		t.Errorf("exit: got %+v, %v, want the reason processes", exit, err)
	}
}

// testForksOnce ends by itself at the first refusal: that the limit was met is
// known all the same.
func testForksOnce(t *testing.T, b *bench) {
	req := b.request(`
while True:
    try:
        if os.fork() == 0:
            import time
            time.sleep(60)
    except OSError: os._exit(3)
`)
	req.Limits.PIDs = 32
	if got := b.run(t, req).exit; got.Reason != runner.ReasonProcesses {
		t.Errorf("exit: got %+v, want the reason processes", got)
	}
}

func testThreads(t *testing.T, b *bench) {
	req := b.request(`
import threading, time
while True:
    try: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    except RuntimeError: pass
`)
	req.Limits.PIDs = 32
	if got := b.run(t, req).exit; got.Reason != runner.ReasonProcesses {
		t.Errorf("exit: got %+v, want the reason processes", got)
	}
}

func testDisk(t *testing.T, b *bench) {
	b.script(t, `
import errno
total = 0
for place in ("/workspace", "/tmp", "/dev/shm"):
    try:
        with open(place + "/big", "wb", buffering=0) as f:
            while True: total += f.write(bytes(1 << 20))
    except OSError as e:
        if e.errno != errno.ENOSPC: print(place, e)
print(60 << 20 < total <= 64 << 20)
`, "True")
}

func testInodes(t *testing.T, b *bench) {
	req := b.request(`
import errno
total = 0
for place in ("/workspace", "/tmp", "/dev/shm"):
    try:
        while True:
            open(f"{place}/{total}", "x").close(); total += 1
    except OSError as e:
        if e.errno != errno.ENOSPC: print(place, e)
print(total)
`)
	req.Limits.Inodes = 3000
	var total int
	got := b.run(t, req)
	if _, err := fmt.Sscan(got.stdout, &total); err != nil || total > 3000 || total < 2000 {
		t.Errorf("files: got %q, want nearly 3000\nstderr: %s", got.stdout, got.stderr)
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
	pooled, err := runner.New(saver, &runner.Options{Logger: b.Logger, StateDir: filepath.Join(filepath.Dir(b.dir), "p"), Pool: 2})
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

func testOpenFiles(t *testing.T, b *bench) {
	req := b.request(`
import errno
files = []
try:
    while True: files.append(os.open("/dev/null", os.O_RDONLY))
except OSError as e:
    print(errno.errorcode[e.errno], len(files) <= 64)
`)
	req.Limits.OpenFiles = 64
	if got := b.run(t, req); got.stdout != "EMFILE True\n" {
		t.Errorf("got %q, want EMFILE at 64", got.stdout)
	}
}

func testCPU(t *testing.T, b *bench) {
	req := b.request(`
import time
end = time.monotonic() + 2
while time.monotonic() < end: pass
`)
	req.Limits.CPUs = 0.5
	got := b.run(t, req)
	used, allowed := got.usage.CPU, time.Duration(0.75*float64(got.took))
	if used == 0 || used > allowed {
		t.Errorf("CPU time in %v at half a core: got %v, want at most %v", got.took, used, allowed)
	}
}

// testStubborn kills what resists: children that left the session, ignore
// signals, and hold the pipes.
func testStubborn(t *testing.T, b *bench) {
	s := b.acquire(t, b.request(`
import signal, time
for n in range(1, 32):
    if n not in (9, 19): signal.signal(n, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("detached", flush=True)
        while True: time.sleep(1)
while True: time.sleep(1)
`))
	if err := s.Go(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(string(s.Stdout().Head), "detached") {
		if time.Now().After(deadline) {
			t.Fatal("the child did not start")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if exit, err := s.Wait(ctx); err != nil || exit.Signal != 9 {
		t.Errorf("exit: got %+v, %v, want signal 9", exit, err)
	}
	if err := s.Drain(ctx); err != nil {
		t.Error(err)
	}
}

func testFailures(t *testing.T, b *bench) {
	tests := []struct {
		name   string
		change func(*runner.Request)
		want   string
	}{
		{"no such program", func(r *runner.Request) { r.Image.Args = []string{"/no/such/program"} }, "no/such/program"},
		{"no such root", func(r *runner.Request) { r.Image.RootFS = "/no/such/root" }, "no such file"},
		{"no such mount", func(r *runner.Request) { r.Mounts[0].Source = "/no/such/mount" }, "no such file"},
		{"a mount outside the workspace", func(r *runner.Request) { r.Mounts[0].Target = "/usr" }, "not below /workspace"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := b.request("")
			test.change(&req)
			s, err := b.runner.Acquire(t.Context(), req)
			if err == nil {
				t.Fatalf("got sandbox %q, want an error", s.ID())
			}
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line with %q", err, test.want)
			}
		})
	}
}

// testNeighbours lets a sandbox meet its limits beside one that counts.
func testNeighbours(t *testing.T, b *bench) {
	counter := b.acquire(t, b.request(`
import time
for i in range(30): time.sleep(0.1)
print("undisturbed")
`))
	done := make(chan outcome, 1)
	go func() { done <- b.finish(t, counter) }()
	for _, script := range []string{
		"hog = []\nwhile True: hog.append(bytearray(os.urandom(1 << 20)))",
		"while True:\n  try: os.fork()\n  except OSError: pass",
	} {
		req := b.request(script)
		req.Limits.PIDs = 32
		b.run(t, req)
	}
	if got := <-done; got.stdout != "undisturbed\n" || got.exit != (runner.Exit{}) {
		t.Errorf("the neighbour: got %+v, want undisturbed", got)
	}
}
