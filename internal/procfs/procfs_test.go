package procfs_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/procfs"
)

func TestOwnProcessIsListedButNeverMatches(t *testing.T) {
	pids, err := procfs.PIDs()
	if err != nil || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("got %v, %v, want this process among them", pids, err)
	}
	if got := procfs.Arguments(os.Getpid()); !slices.Equal(got, os.Args) {
		t.Errorf("got arguments %q, want %q", got, os.Args)
	}
	matching, err := procfs.Matching(func(arguments []string) bool { return slices.Equal(arguments, os.Args) })
	if err != nil || slices.Contains(matching, os.Getpid()) {
		t.Errorf("got %v, %v, want all but this process", matching, err)
	}
}

func TestKillMatchingEndsAllThatMatch(t *testing.T) {
	mark := t.TempDir() + "/mark"
	marked := func(arguments []string) bool {
		return slices.ContainsFunc(arguments, func(a string) bool { return strings.Contains(a, mark) })
	}
	var started []*exec.Cmd
	for range 2 {
		cmd := exec.Command("sh", "-c", "while :; do sleep 60; done", mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started = append(started, cmd)
	}
	if err := procfs.KillMatching(context.Background(), marked); err != nil {
		t.Error(err)
	}
	for _, cmd := range started {
		if err := cmd.Wait(); err == nil {
			t.Error("a process that matches ended by itself")
		}
	}
}

func TestAProcessThatIsGoneIsNoError(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if err := procfs.Kill(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if got := procfs.Arguments(cmd.Process.Pid); got != nil {
		t.Errorf("got arguments %q of a process that is gone", got)
	}
}
