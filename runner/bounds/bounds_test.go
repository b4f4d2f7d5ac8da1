package bounds_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/bounds"
)

// TestGroup makes a group, ends what runs in it and wants nothing to be left.
// That Sweep removes what is left, the drivers' tests of killed Airlocks show.
func TestGroup(t *testing.T) {
	testenv.Sandbox(t)
	host := bounds.Find()
	if err := host.Lack(); err != nil {
		t.Skip(err)
	}
	spec := runner.Spec{ID: "sb-bounds", StateDir: t.TempDir(), Limits: runner.DefaultLimits()}
	group, err := host.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	if err := group.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := group.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
	if err := group.Remove(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if err := bounds.Sweep(t.Context(), spec.StateDir); err != nil {
		t.Errorf("sweeping what is gone already: %v", err)
	}
	for _, dir := range group.Dirs() {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: got %v, want it to be gone", dir, err)
		}
	}
	if err := bounds.Sweep(t.Context(), t.TempDir()); err != nil {
		t.Errorf("a sandbox without a group: got %v, want nil", err)
	}
}
