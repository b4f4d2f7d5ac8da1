package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
)

// echo is a guest that answers one line from the broker's socket on stdout.
func echo(_ context.Context, g *runnertest.GuestIO) runner.Exit {
	if !g.Ready() {
		return runner.Exit{Code: 1}
	}
	conn, err := g.Dial()
	if err != nil {
		return runner.Exit{Code: 2}
	}
	defer conn.Close()
	if _, err := io.Copy(g.Stdout, conn); err != nil {
		return runner.Exit{Code: 3}
	}
	return runner.Exit{Code: 7}
}

// patient is a guest that is ready and then waits to be killed.
func patient(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
	g.Ready()
	<-ctx.Done()
	return runner.Exit{}
}

// exits is a guest that writes something and ends.
func exits(wrote string, exit runner.Exit) runnertest.Guest {
	return func(_ context.Context, g *runnertest.GuestIO) runner.Exit {
		_, _ = io.WriteString(g.Stdout, wrote)
		return exit
	}
}

func newRunner(t *testing.T, fake *runnertest.Fake, opts runner.Options) *runner.Runner {
	t.Helper()
	opts.Logger = slog.New(slog.DiscardHandler)
	if opts.Pool == 0 {
		opts.Pool = -1
	}
	if opts.StateDir == "" {
		opts.StateDir = shortDir(t)
	}
	r, err := runner.New(fake, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil && fake.CloseErr == nil {
			t.Error(err)
		}
		if now, _ := fake.Alive(); now != 0 {
			t.Errorf("sandboxes after Close: got %d, want 0", now)
		}
		entries, err := os.ReadDir(opts.StateDir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.IsDir() {
				t.Errorf("directory after Close: %s", entry.Name())
			}
		}
	})
	return r
}

// shortDir is a temporary directory whose path leaves room for sockets below it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "airlock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func request() runner.Request {
	return runner.Request{Image: runner.Image{Name: "python"}, Limits: runner.DefaultLimits()}
}

func TestALifeFromAcquireToClose(t *testing.T) {
	r := newRunner(t, &runnertest.Fake{Guest: echo}, runner.Options{})
	s, err := r.Acquire(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	conn, err := s.Listener().Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	exit, err := s.Wait(t.Context())
	if want := (runner.Exit{Code: 7}); exit != want || err != nil {
		t.Errorf("exit: got %+v, %v, want %+v", exit, err, want)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if got := s.Stdout(); string(got.Head) != "hello\n" || string(got.Tail) != "hello\n" || got.Total != 6 {
		t.Errorf("stdout: got %+v, want hello without the ready line", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := s.Usage().PeakMemory; got != 1<<20 {
		t.Errorf("peak memory after Close: got %d, want %d", got, 1<<20)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: got %v, want nil", err)
	}
}

func TestGoOnlyOnceAndOnlyWhenReady(t *testing.T) {
	r := newRunner(t, &runnertest.Fake{Guest: patient}, runner.Options{})
	s, err := r.Acquire(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("cannot run sandbox %q in state running", s.ID())
	if err := s.Begin(); err == nil || err.Error() != want {
		t.Errorf("second Go: got %v, want %s", err, want)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Errorf("second Kill: got %v, want nil", err)
	}
	exit, err := s.Wait(t.Context())
	if err != nil || exit.Signal != 9 {
		t.Errorf("exit: got %+v, %v, want signal 9", exit, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(); err == nil {
		t.Error("Go after Close: got nil, want an error")
	}
	if err := s.Kill(); err != nil {
		t.Errorf("Kill after Close: got %v, want nil", err)
	}
}

func TestAcquireFails(t *testing.T) {
	boom := errors.New("boom")
	silent := func(ctx context.Context, _ *runnertest.GuestIO) runner.Exit { <-ctx.Done(); return runner.Exit{} }
	tests := []struct {
		name string
		fake *runnertest.Fake
		want string
	}{
		{"the driver cannot start it", &runnertest.Fake{StartErr: boom}, "boom"},
		{"it does not match the request", &runnertest.Fake{Guest: patient, VerifyErr: boom},
			"does not match the request: boom"},
		{"the guest ends early", &runnertest.Fake{Guest: exits("", runner.Exit{Code: 3})},
			"ended before it was ready, with status 3"},
		{"the guest dies early", &runnertest.Fake{Guest: exits("rea", runner.Exit{Signal: 11})}, "by signal 11"},
		{"its memory is too small",
			&runnertest.Fake{Guest: exits("", runner.Exit{Signal: 9, Reason: runner.ReasonMemory})},
			"memory limit is too small"},
		{"the sandbox fails", &runnertest.Fake{Guest: exits("", runner.Exit{}), WaitErr: boom}, "boom"},
		{"the guest says something else", &runnertest.Fake{Guest: exits("hello world\n", runner.Exit{})},
			`wrote "hello "`},
		{"the guest says nothing", &runnertest.Fake{Guest: silent}, "not ready within"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var opts runner.Options
			if test.want == "not ready within" {
				opts.StartTimeout = 200 * time.Millisecond
			}
			r := newRunner(t, test.fake, opts)
			s, err := r.Acquire(t.Context(), request())
			if err == nil {
				t.Fatalf("got sandbox %q, want an error", s.ID())
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error: got %q, want it to contain %q", err, test.want)
			}
			if now, _ := test.fake.Alive(); now != 0 {
				t.Errorf("sandboxes left: got %d, want 0", now)
			}
		})
	}
}

func TestFloodKills(t *testing.T) {
	flood := func(_ context.Context, g *runnertest.GuestIO) runner.Exit {
		g.Ready()
		for {
			if _, err := io.WriteString(g.Stderr, strings.Repeat("x", 1000)); err != nil {
				return runner.Exit{}
			}
		}
	}
	r := newRunner(t, &runnertest.Fake{Guest: flood}, runner.Options{})
	req := request()
	req.Limits.Stderr, req.Limits.Output = 1000, 100_000
	s, err := r.Acquire(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	<-s.Flooded()
	if exit, err := s.Wait(t.Context()); err != nil || exit.Signal != 9 {
		t.Errorf("exit: got %+v, %v, want signal 9", exit, err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if got := s.Stderr(); got.Total > 100_000 || len(got.Head) > 1000+4096 || len(got.Head) < 1000 {
		t.Errorf("kept: got %d bytes of head and a total of %d, want a little over 1000 and at most 100000",
			len(got.Head), got.Total)
	}
}

func TestCloseEndsStartsAndWaits(t *testing.T) {
	starting := make(chan struct{})
	silent := func(ctx context.Context, _ *runnertest.GuestIO) runner.Exit {
		close(starting)
		<-ctx.Done()
		return runner.Exit{}
	}
	r := newRunner(t, &runnertest.Fake{Guest: silent}, runner.Options{MaxSandboxes: 1})
	result := make(chan error, 1)
	go func() {
		_, err := r.Acquire(t.Context(), request())
		result <- err
	}()
	<-starting
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, runner.ErrClosed) {
		t.Errorf("the start under way: got %v, want ErrClosed", err)
	}
	if _, err := r.Acquire(t.Context(), request()); !errors.Is(err, runner.ErrClosed) {
		t.Errorf("Acquire after Close: got %v, want ErrClosed", err)
	}
}

func TestSweepOnlyTheDead(t *testing.T) {
	dir := shortDir(t)
	fake := &runnertest.Fake{Guest: patient}
	alive := newRunner(t, fake, runner.Options{StateDir: dir})
	s, err := alive.Acquire(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(dir, "dead", "sb-1", "state")
	if err := os.MkdirAll(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	second := &runnertest.Fake{Guest: patient}
	logger := slog.New(slog.DiscardHandler)
	r, err := runner.New(second, &runner.Options{Logger: logger, StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := second.Swept(); len(got) != 1 || got[0] != dead {
		t.Errorf("swept: got %v, want only %s", got, dead)
	}
	if _, err := os.Stat(filepath.Join(dir, "dead")); err == nil {
		t.Error("the dead one's directory is still there")
	}
	if conn, err := net.Dial("unix", s.Listener().Addr().String()); err != nil {
		t.Errorf("the living one's socket: %v", err)
	} else {
		conn.Close()
	}
}

func TestLimitsCheck(t *testing.T) {
	if err := runner.DefaultLimits().Check(); err != nil {
		t.Errorf("the default limits: %v", err)
	}
	tests := []struct {
		name   string
		change func(*runner.Limits)
		want   string
	}{
		{"no memory", func(l *runner.Limits) { l.Memory = 0 }, "memory"},
		{"no processes", func(l *runner.Limits) { l.PIDs = 1 }, "pids"},
		{"no time", func(l *runner.Limits) { l.Timeout = 0 }, "wall time"},
		{"no processor", func(l *runner.Limits) { l.CPUs = 0 }, "cpus"},
		{"more disk than memory", func(l *runner.Limits) { l.Disk = 1 << 40 }, "held in its memory"},
		{"no inodes", func(l *runner.Limits) { l.Inodes = 0 }, "inodes"},
		{"too much kept", func(l *runner.Limits) { l.Stdout = 1 << 40 }, "stdout and stderr"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			limits := runner.DefaultLimits()
			test.change(&limits)
			if err := limits.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error about %s", err, test.want)
			}
		})
	}
}

// The server of a sandbox's socket may close its listener; the sandbox is
// removed without complaint all the same.
func TestCloseAfterTheListenerWasClosed(t *testing.T) {
	r := newRunner(t, &runnertest.Fake{Guest: echo}, runner.Options{})
	s, err := r.Acquire(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listener().Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// TestUnproved has one sandbox of several show that it does not hold.
func TestUnproved(t *testing.T) {
	for name, test := range map[string]struct{ said, want string }{
		"another kernel": {strings.Replace(runnertest.Proof, "4.19.0-gvisor", "6.18.0", 1),
			"not answered by gVisor's kernel"},
		"another network": {runnertest.Proof + "  eth0: 0 0\n", "network devices"},
		"no proof":        {"", "not answered by gVisor's kernel"},
	} {
		t.Run(name, func(t *testing.T) {
			handed := false
			fake := &runnertest.Fake{Guest: func(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
				if g.Spec.Image.Name != "bad" {
					return patient(ctx, g)
				}
				g.Greet(test.said)
				<-ctx.Done()
				return runner.Exit{}
			}}
			r := newRunner(t, fake, runner.Options{})
			good, bad := request(), request()
			bad.Image.Name = "bad"
			if err := r.Prove(good); !errors.Is(err, runner.ErrProving) {
				t.Errorf("before any start: got %v, want ErrProving", err)
			}
			s, err := r.Acquire(t.Context(), good)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Prove(good); err != nil {
				t.Errorf("after a start: got %v, want nil", err)
			}
			for _, req := range []runner.Request{bad, good} {
				_, err := r.Acquire(t.Context(), req)
				handed = handed || err == nil
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("image %q: got %v, want %q", req.Image.Name, err, test.want)
				}
			}
			if err := r.Prove(good); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("afterwards: got %v, want %q", err, test.want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			testenv.Await(t, "no sandbox", func() bool { now, _ := fake.Alive(); return now == 0 || handed })
		})
	}
}

// TestProve asks a runner that has been asked for no sandbox.
func TestProve(t *testing.T) {
	fake := &runnertest.Fake{Guest: patient}
	r := newRunner(t, fake, runner.Options{Pool: -1})
	testenv.Await(t, "a sandbox proved itself", func() bool {
		err := r.Prove(request())
		if err != nil && !errors.Is(err, runner.ErrProving) {
			t.Fatal(err)
		}
		return err == nil
	})
	testenv.Await(t, "no sandbox", func() bool { now, _ := fake.Alive(); return now == 0 })
	if _, most := fake.Alive(); most != 1 {
		t.Errorf("got %d sandboxes at once, want 1", most)
	}
}

// TestProveFails uses a runner whose sandboxes do not start. Prove returns the reason, and
// a second call soon after does not start another sandbox.
func TestProveFails(t *testing.T) {
	fake := &runnertest.Fake{Guest: exits("", runner.Exit{Code: 3})}
	r := newRunner(t, fake, runner.Options{Pool: -1})
	testenv.Await(t, "why none starts", func() bool { return !errors.Is(r.Prove(request()), runner.ErrProving) })
	for range 3 {
		if err := r.Prove(request()); err == nil ||
			!strings.Contains(err.Error(), "before it was ready, with status 3") {
			t.Errorf("got %v, want how the guest ended", err)
		}
	}
	testenv.Await(t, "no sandbox", func() bool { now, _ := fake.Alive(); return now == 0 })
	if _, most := fake.Alive(); most != 1 {
		t.Errorf("got %d sandboxes at once, want 1", most)
	}
}
