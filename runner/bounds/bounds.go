// Package bounds gives each sandbox a control group of its own, with the limits
// that the host enforces: memory, processors, tasks.
package bounds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cgroup"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ocispec"
)

// Host is what this host can bound. It may be used concurrently.
type Host struct {
	tree *cgroup.Tree // nil where this user may not make control groups
	lack error
}

// Find looks at the host's control groups.
func Find() *Host {
	tree, err := cgroup.Find()
	if err != nil {
		return &Host{lack: fmt.Errorf("the limits of CPU and host processes cannot be enforced, and that of memory is only watched: %w", err)}
	}
	var errs []error
	for _, c := range cgroup.Bounding() {
		switch {
		case tree.Has(c):
		case c == cgroup.Memory:
			errs = append(errs, errors.New("the limit of memory is only watched: its control group is not delegated to this user"))
		default:
			errs = append(errs, fmt.Errorf("the limit of %s cannot be enforced: its control group is not delegated to this user", c))
		}
	}
	return &Host{tree: tree, lack: errors.Join(errs...)}
}

// Lack says which limits the host's kernel cannot enforce, and why, or is nil.
// Others still may, and memory has a Meter.
func (h *Host) Lack() error { return h.lack }

// New makes the sandbox's control group, and first writes down in its StateDir
// where it is, for Sweep. It returns nil where there can be none.
func (h *Host) New(spec runner.Spec) (*cgroup.Group, error) {
	if h.tree == nil {
		return nil, nil
	}
	name := "airlock-" + spec.ID
	if err := os.WriteFile(record(spec.StateDir), []byte(strings.Join(h.tree.Paths(name), "\n")), 0o600); err != nil {
		return nil, err
	}
	var limits cgroup.Limits
	if h.tree.Has(cgroup.Memory) {
		limits.Memory = spec.Limits.Memory
	}
	if h.tree.Has(cgroup.CPU) {
		limits.CPUs = spec.Limits.CPUs
	}
	if h.tree.Has(cgroup.PIDs) {
		limits.Tasks = ocispec.HostTasks(spec.Limits)
	}
	return h.tree.New(name, limits)
}

// Sweep kills what is in the control group of a sandbox whose Airlock has died,
// and removes the group.
func Sweep(ctx context.Context, stateDir string) error {
	data, err := os.ReadFile(record(stateDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return cgroup.Remove(ctx, strings.Fields(string(data)))
}

// record is the file that says which directories the control group consists of.
func record(stateDir string) string { return filepath.Join(stateDir, "cgroups") }
