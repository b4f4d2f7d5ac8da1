package runnertest

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/runner"
)

// envVictim names, in a copy of the test that is to be killed, the directory of its
// sandboxes.
const envVictim = "AIRLOCK_TEST_VICTIM"

// envKills overrides how often Orphans.Run kills.
const envKills = "AIRLOCK_TEST_KILLS"

// Orphans kills Airlocks with SIGKILL at random moments. The next one must find
// and remove every process, control group, mount and directory.
type Orphans struct {
	Driver runner.Driver // of the next Airlock
	Logger *slog.Logger

	Kills  int           // how often; AIRLOCK_TEST_KILLS overrides it
	Within time.Duration // the moments lie between 0 and this, or more on a slow machine
	Env    []string      // for the victim, beside this process's environment

	// Left lists what is left outside of the state directory. It may be nil.
	Left func(*testing.T) []string
}

// Victim starts and closes sandboxes until it is killed. Each package with an
// Orphans test calls it from a test named TestVictim, which is skipped unless
// Orphans has started it.
func Victim(t *testing.T, prepare func(*testing.T) (runner.Driver, *slog.Logger, runner.Request)) {
	dir := os.Getenv(envVictim)
	if dir == "" {
		t.Skip("is for TestKilledAirlock, which runs it and kills it")
	}
	driver, logger, req := prepare(t)
	r, err := runner.New(driver, &runner.Options{Logger: logger, StateDir: dir, Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	for {
		s, err := r.Acquire(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Run kills and looks, as often as it should.
func (o *Orphans) Run(t *testing.T) {
	kills := o.Kills
	if text := os.Getenv(envKills); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	parent, err := os.MkdirTemp("/tmp", "airlock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	dir := filepath.Join(parent, "s")
	within, removed := o.Within, 0
	for i := 0; i < kills || removed == 0; i++ {
		if i >= kills { // on a slow machine, none of them has come to a sandbox so far
			within *= 2
		}
		if within > timeout {
			t.Fatalf("after %d kills: nothing was ever left to remove", i)
		}
		life := rand.N(within)
		o.kill(t, dir, life)
		removed += o.checkSwept(t, dir)
		if t.Failed() {
			t.Fatalf("kill %d of %d, after %v", i+1, kills, life)
		}
	}
}

// kill starts a victim and kills it.
func (o *Orphans) kill(t *testing.T, dir string, life time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.timeout="+(2*timeout).String())
	cmd.Env = append(append(os.Environ(), envVictim+"="+dir), o.Env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(life) // the moment is what the test varies
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as intended
}

// checkSwept starts the next Airlock and returns how many sandboxes it removed.
func (o *Orphans) checkSwept(t *testing.T, dir string) int {
	t.Helper()
	orphans, err := filepath.Glob(filepath.Join(dir, "*", "sb-*"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(o.Driver, &runner.Options{Logger: o.Logger, StateDir: dir, Pool: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, orphan := range orphans {
		for _, left := range traces(t, orphan) {
			t.Errorf("%s is left of %s", left, orphan)
		}
	}
	if o.Left != nil {
		if left := o.Left(t); len(left) > 0 {
			t.Errorf("%q is left elsewhere", left)
		}
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return len(orphans)
}

// traces lists what exists of a sandbox: its directory, processes, control groups and mounts.
func traces(t *testing.T, home string) []string {
	t.Helper()
	var found []string
	if _, err := os.Stat(home); err == nil {
		found = append(found, home)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if args, err := os.ReadFile(line); err == nil && strings.Contains(string(args), home) {
			found = append(found, line)
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/", "/sys/fs/cgroup/*/*/",
		"/sys/fs/cgroup/*/*/*/"} {
		groups, err := filepath.Glob(pattern + "airlock-" + filepath.Base(home))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, groups...)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), home) {
		found = append(found, "a mount")
	}
	return found
}
