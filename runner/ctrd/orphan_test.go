package ctrd_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ctrd"
	"github.com/airlock-mcp/airlock/runner/ctrd/ctrdtest"
)

// What a copy of this test that is to be killed is told: the folder of its
// sandboxes, and its daemon.
const (
	envVictim = "AIRLOCK_TEST_VICTIM"
	envDaemon = "AIRLOCK_TEST_DAEMON"
)

// envKills overrides how often TestKilledAirlock kills.
const envKills = "AIRLOCK_TEST_KILLS"

// TestVictim starts and closes sandboxes until it is killed.
func TestVictim(t *testing.T) {
	dir := os.Getenv(envVictim)
	if dir == "" {
		t.Skip("is for TestKilledAirlock, which runs it and kills it")
	}
	env := testenv.Sandbox(t)
	driver := newDriver(t, &ctrdtest.Daemon{Address: os.Getenv(envDaemon)})
	r, err := runner.New(driver, &runner.Options{Logger: logger(t), StateDir: dir, Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	req := runner.Request{Image: image(t, env.Home, "python"), Limits: runner.DefaultLimits()}
	for {
		s, err := r.Acquire(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Go(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKilledAirlock kills an Airlock with SIGKILL at random moments. The next
// one must find and remove every process, control group, mount and folder.
func TestKilledAirlock(t *testing.T) {
	env := testenv.Sandbox(t)
	daemon := ctrdtest.Run(t)
	driver := newDriver(t, daemon)
	kills := 8
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
	importFirst(t, driver, env, dir)
	removed := 0
	for i := range kills {
		life := time.Duration(rand.IntN(1500)) * time.Millisecond
		cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$", "-test.timeout=60s")
		cmd.Dir = filepath.Join(testenv.RepoRoot(t), "runner", "ctrd")
		cmd.Env = append(os.Environ(), envVictim+"="+dir, envDaemon+"="+daemon.Address, "AIRLOCK_HOME="+env.Home)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(life) // the moment is what the test varies
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed, as intended
		removed += checkSwept(t, driver, dir)
		if t.Failed() {
			t.Fatalf("kill %d of %d, after %v", i+1, kills, life)
		}
	}
	if removed == 0 {
		t.Errorf("after %d kills: nothing was ever left to remove", kills)
	}
}

// importFirst has the daemon import the image, so that the kills meet sandboxes.
func importFirst(t *testing.T, driver *ctrd.Driver, env testenv.Env, dir string) {
	t.Helper()
	r, err := runner.New(driver, &runner.Options{Logger: logger(t), StateDir: dir, Pool: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Acquire(t.Context(), runner.Request{Image: image(t, env.Home, "python"), Limits: runner.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), r.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// checkSwept starts the next Airlock and returns how many sandboxes it removed.
func checkSwept(t *testing.T, driver *ctrd.Driver, dir string) int {
	t.Helper()
	orphans, err := filepath.Glob(filepath.Join(dir, "*", "sb-*"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r, err := runner.New(driver, &runner.Options{Logger: logger(t), StateDir: dir, Pool: -1})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("removing %d orphans took %v, want at most 5 s", len(orphans), took)
	}
	for _, orphan := range orphans {
		for _, left := range traces(t, orphan) {
			t.Errorf("%s is left of %s", left, orphan)
		}
	}
	if left := ctrd.Belongings(t, driver); len(left) > 0 {
		t.Errorf("containerd still has %q", left)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return len(orphans)
}

// traces lists what exists of a sandbox: its folder, processes, control groups and mounts.
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
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/", "/sys/fs/cgroup/*/*/", "/sys/fs/cgroup/*/*/*/"} {
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
