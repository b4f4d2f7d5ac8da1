package runnertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/runner"
)

func testMemory(t *testing.T, b *bench) {
	got := b.run(t, b.request(`
hog = []
while True: hog.append(bytearray(os.urandom(1 << 20)))
`))
	if got.exit.Reason != runner.ReasonMemory {
		t.Errorf("exit: got %+v, want the reason memory\nstderr: %s", got.exit, got.stderr)
	}
	most := int64(257 << 20)
	if b.Unenforced { // memory is sampled, and later on a busy machine
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
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
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
