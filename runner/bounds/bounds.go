// Package bounds creates a control group for each sandbox, with the limits
// that the host enforces: memory, CPU, tasks.
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

// Host describes the limits that this host can enforce. It may be used concurrently.
type Host struct {
	tree *cgroup.Tree // nil if this user cannot create control groups
	lack error
}

// Find looks at the host's control groups.
func Find() *Host {
	tree, err := cgroup.Find()
	if err != nil {
		return &Host{lack: fmt.Errorf(
			"the limits of CPU and host processes cannot be enforced, and that of memory is only watched: %w", err)}
	}
	var errs []error
	for _, c := range cgroup.Bounding() {
		switch {
		case tree.Has(c):
		case c == cgroup.Memory:
			errs = append(errs, errors.New(
				"the limit of memory is only watched: its control group is not delegated to this user"))
		default:
			errs = append(errs, fmt.Errorf(
				"the limit of %s cannot be enforced: its control group is not delegated to this user", c))
		}
	}
	return &Host{tree: tree, lack: errors.Join(errs...)}
}

// Lack returns an error that names the limits the host's kernel cannot enforce, and why.
// It returns nil if the kernel enforces all of them. Without a control group, memory is
// bounded by a Meter.
func (h *Host) Lack() error { return h.lack }

// New creates the sandbox's control group. Before that, it records the group's path in
// the StateDir, for Sweep. It returns nil if this user cannot create control groups.
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

// record returns the path of the file that lists the directories of the control group.
func record(stateDir string) string { return filepath.Join(stateDir, "cgroups") }
