// Package runnertest contains the test suite that every driver must pass, and a fake
// driver for tests of the runner and of packages that use it. It is for tests only: the
// fake isolates nothing.
package runnertest

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/runner"
)

// Suite is what every driver must pass, with real sandboxes.
type Suite struct {
	Driver runner.Driver
	Python runner.Image // an image with /usr/bin/python3; its Args are replaced
	Logger *slog.Logger

	// Unenforced leaves out the tests of limits that need control groups.
	Unenforced bool
}

// needControlGroups are the tests that Unenforced leaves out.
var needControlGroups = []string{"cpu", "neighbours"}

// Run runs the whole suite.
func (s *Suite) Run(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *bench){
		"life":               testLife,
		"exits":              testExits,
		"identity":           testIdentity,
		"files":              testFiles,
		"network":            testNetwork,
		"socket":             testSocket,
		"pause":              testPause,
		"flush":              testFlush,
		"interrupt":          testInterrupt,
		"memory":             testMemory,
		"memory of children": testMemoryOfChildren,
		"memory of files":    testMemoryOfFiles,
		"forks":              testForks,
		"forks once":         testForksOnce,
		"threads":            testThreads,
		"disk":               testDisk,
		"inodes":             testInodes,
		"template":           testTemplate,
		"suspend":            testSuspend,
		"open files":         testOpenFiles,
		"cpu":                testCPU,
		"stubborn":           testStubborn,
		"neighbours":         testNeighbours,
		"failures":           testFailures,
	} {
		t.Run(name, func(t *testing.T) {
			if s.Unenforced && slices.Contains(needControlGroups, name) {
				t.Skip("this user may not make control groups")
			}
			test(t, s.bench(t))
		})
	}
}

// bench is a runner for one test, and the directories its sandboxes see.
type bench struct {
	*Suite
	runner  *runner.Runner
	dir     string // of the runner's state
	servers string // appears at /workspace/servers
}

func (s *Suite) bench(t *testing.T) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "airlock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &bench{Suite: s, dir: filepath.Join(dir, "s"), servers: filepath.Join(dir, "w")}
	for _, step := range []error{
		os.Chmod(dir, 0o755), os.Mkdir(b.servers, 0o755),
		os.WriteFile(filepath.Join(b.servers, "wrapper.py"), []byte("x = 1\n"), 0o644),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	b.runner, err = runner.New(s.Driver, &runner.Options{Logger: s.Logger, StateDir: b.dir, MaxSandboxes: 4, Pool: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.runner.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return b
}

// prelude is the guest's part of docs/socket.md before the code.
const prelude = `
import os, sys
os.write(1, open("/proc/version", "rb").read() + open("/proc/net/dev", "rb").read() + b"ready\n")
os.read(0, 16)
`

func (b *bench) request(script string) runner.Request {
	image := b.Python
	image.Args = []string{"/usr/bin/python3", "-c", prelude + script}
	limits := runner.DefaultLimits()
	limits.Memory = 256 << 20
	limits.Disk = 64 << 20
	return runner.Request{Image: image, Limits: limits,
		Mounts: []runner.Mount{{Source: b.servers, Target: "/workspace/servers"}}}
}

// timeout is how long the suite waits for what must happen: longer than it takes on a
// slow machine where other tests run beside it. Only a failure takes so long.
const timeout = 2 * time.Minute

// acquire starts a sandbox that is closed with the test.
func (b *bench) acquire(t *testing.T, req runner.Request) *runner.Sandbox {
	t.Helper()
	s, err := b.runner.Acquire(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// outcome is how a script ended.
type outcome struct {
	exit           runner.Exit
	stdout, stderr string
	usage          runner.Usage
	took           time.Duration
}

// run runs a script to its end, or fails when it does not end.
func (b *bench) run(t *testing.T, req runner.Request) outcome {
	t.Helper()
	s := b.acquire(t, req)
	return b.finish(t, s)
}

func (b *bench) finish(t *testing.T, s *runner.Sandbox) outcome {
	t.Helper()
	began := time.Now()
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	exit, err := s.Wait(ctx)
	if err != nil {
		t.Errorf("waiting: %v\nstdout: %s\nstderr: %s", err, s.Stdout().Tail, s.Stderr().Tail)
	}
	took := time.Since(began)
	if err := s.Drain(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return outcome{exit: exit, stdout: string(s.Stdout().Head), stderr: string(s.Stderr().Head), usage: s.Usage(),
		took: took}
}

// script runs a script with the usual limits and wants it to print something.
func (b *bench) script(t *testing.T, script, want string) {
	t.Helper()
	got := b.run(t, b.request(script))
	if strings.TrimSpace(got.stdout) != want || got.exit != (runner.Exit{}) {
		t.Errorf("got %q and exit %+v, want %q\nstderr: %s", got.stdout, got.exit, want, got.stderr)
	}
}

// connected lets the code of a sandbox go on until it has connected to the broker's
// socket, and returns the host's end.
func connected(t *testing.T, s *runner.Sandbox) net.Conn {
	t.Helper()
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	conn, err := s.Listener().Accept()
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
