package cgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// hostTree returns the place for groups on this machine; a test that needs one
// runs where sandboxes do.
func hostTree(t *testing.T) *Tree {
	t.Helper()
	testenv.Sandbox(t)
	tree, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// unifiedTree returns a tree of version 2, even if the controllers use version 1: groups
// without controllers can still contain and kill processes.
func unifiedTree(t *testing.T) *Tree {
	t.Helper()
	testenv.Sandbox(t)
	for _, dir := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil {
			return &Tree{version: 2, dirs: map[Controller]string{"": dir}}
		}
	}
	t.Fatal("this machine has no control groups of version 2")
	return nil
}

func newGroup(t *testing.T, tree *Tree, limits Limits) *Group {
	t.Helper()
	g, err := tree.New("airlock-test-"+strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := g.Kill(ctx); err != nil {
			t.Error(err)
		}
		if err := g.Remove(ctx); err != nil {
			t.Error(err)
		}
		for _, dir := range g.Dirs() {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s: still there after Remove", dir)
			}
		}
	})
	return g
}

func TestGroupHoldsAndKillsATree(t *testing.T) {
	trees := map[string]func(*testing.T) *Tree{"host": hostTree, "version 2": unifiedTree}
	for name, tree := range trees {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, tree(t), Limits{})
			// A child that leaves its session and whose parent ends.
			cmd := exec.Command("sh", "-c", "setsid sleep 1000 & sleep 1000 & echo started; wait")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Start(cmd); err != nil {
				t.Fatal(err)
			}
			buffer := make([]byte, len("started\n"))
			if _, err := out.Read(buffer); err != nil {
				t.Fatal(err)
			}
			pids, err := g.Members()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(pids, cmd.Process.Pid) || len(pids) != 3 {
				t.Errorf("members: got %v, want three with %d", pids, cmd.Process.Pid)
			}
			go cmd.Wait() // reaps; how it ends is seen below
			if err := g.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				if state := procState(pid); state != "" && state != "Z" && state != "X" {
					t.Errorf("process %d: got state %q, want it dead", pid, state)
				}
			}
		})
	}
}

func procState(pid int) string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return rest[:1]
}

func TestMemoryLimitKillsAndIsCounted(t *testing.T) {
	g := newGroup(t, hostTree(t), Limits{Memory: 16 << 20})
	oom := make(chan bool, 1)
	go func() {
		hit, err := g.AwaitOOM(t.Context())
		if err != nil {
			t.Error(err)
		}
		oom <- hit
	}()
	cmd := exec.Command("sh", "-c", "x=$(head -c 64000000 /dev/zero | tr '\\0' x)")
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the shell's status depends on which process the kernel chose
	if !<-oom {
		t.Error("AwaitOOM: got false, want true")
	}
	stat := g.Stat()
	if stat.OOMKills == 0 || stat.PeakMemory < 8<<20 || stat.PeakMemory > 17<<20 {
		t.Errorf("got %+v, want a kill and a peak near 16 MiB", stat)
	}
}

func TestAwaitOOMEndsWithTheContext(t *testing.T) {
	g := newGroup(t, hostTree(t), Limits{Memory: 64 << 20})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if hit, err := g.AwaitOOM(ctx); hit || err != nil {
		t.Errorf("got %v, %v, want false", hit, err)
	}
}

func TestTaskLimitRefusesAndIsCounted(t *testing.T) {
	g := newGroup(t, hostTree(t), Limits{Tasks: 6})
	cmd := exec.Command("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; wait")
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	select {
	case <-done: // sh gives up when it cannot fork
	case <-time.After(10 * time.Second):
	}
	if hit := g.Stat().TasksHit; hit == 0 {
		t.Error("refused forks: got 0, want some")
	}
	if err := g.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
}

func TestCPUQuotaHolds(t *testing.T) {
	g := newGroup(t, hostTree(t), Limits{CPUs: 0.2})
	cmd := exec.Command("timeout", "1", "sh", "-c", "while :; do :; done")
	began := time.Now()
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// A second, or more on a busy machine: then it also gets less CPU time.
	took := time.Since(began)
	if used := g.Stat().CPU; used == 0 || used > took/2 {
		t.Errorf("CPU time of %v of work at 0.2 cores: got %v", took, used)
	}
}

func TestRemoveRefusesOtherDirectories(t *testing.T) {
	dir := t.TempDir()
	if err := Remove(t.Context(), []string{dir}); err == nil {
		t.Error("removing a directory that is no control group: got nil, want an error")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestNewRefusesNames(t *testing.T) {
	tree := &Tree{version: 2, dirs: map[Controller]string{Memory: t.TempDir()}}
	for _, name := range []string{"", ".", "..", "a/b", "../x"} {
		if g, err := tree.New(name, Limits{}); err == nil {
			t.Errorf("name %q: got group in %v, want an error", name, g.Dirs())
		}
	}
}

func TestNewLeavesAnothersGroupAlone(t *testing.T) {
	tree := hostTree(t)
	g := newGroup(t, tree, Limits{})
	if _, err := tree.New(g.name, Limits{}); err == nil {
		t.Fatal("making the same group twice: got nil, want an error")
	}
	for _, dir := range g.Dirs() {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
