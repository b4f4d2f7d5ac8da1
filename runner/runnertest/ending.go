package runnertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/runner"
)

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
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(timeout)
	for !strings.Contains(string(s.Stdout().Head), "detached") {
		if time.Now().After(deadline) {
			t.Fatal("the child did not start")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
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
		{"a mount outside the workspace", func(r *runner.Request) { r.Mounts[0].Target = "/usr" },
			"not below /workspace"},
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
