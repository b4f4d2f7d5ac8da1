package ctrd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/runtimeoptions/v1"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/containerd/typeurl/v2"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/runner"
)

// The resources of a sandbox in the daemon: a lease, a snapshot that the lease keeps, a
// container and its task. The last three are named as the sandbox.

// runtimeName is gVisor's shim in containerd's words.
const runtimeName = "io.containerd.runsc.v1"

// Labels of a lease: which sandbox it is of, and during which run of the host it
// was made (random(4), boot_id).
const (
	sandboxLabel = "io.airlock/sandbox"
	bootLabel    = "io.airlock/boot"
)

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

// makingTime bounds a request that makes something in the daemon.
const makingTime = 30 * time.Second

// making has the daemon make something. A start that is given up meanwhile waits for the
// answer: the daemon may complete a request that was given up, after what the start had was removed.
func making(ctx context.Context, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makingTime)
	defer cancel()
	return do(ctx)
}

func leaseOf(id string) string { return "airlock-" + id }

// lease makes the lease that a sandbox's snapshot belongs to. It does not expire:
// a sandbox may wait for as long as its Airlock lives.
func (d *daemon) lease(ctx context.Context, spec runner.Spec) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	labels := map[string]string{sandboxLabel: spec.ID, bootLabel: boot}
	err = making(ctx, func(ctx context.Context) error {
		_, err := d.client.LeasesService().Create(ctx, leases.WithID(leaseOf(spec.ID)), leases.WithLabels(labels))
		return err
	})
	if err != nil {
		return fmt.Errorf("making a lease: %w", err)
	}
	return nil
}

// removeFormer removes what sandboxes had in the daemon before the host was
// started anew: the daemon remembers them, but their directories are gone.
func (d *daemon) removeFormer(ctx context.Context) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	former, err := d.client.LeasesService().List(ctx, fmt.Sprintf("labels.%q", sandboxLabel))
	if err != nil {
		return fmt.Errorf("looking for sandboxes of before: %w", err)
	}
	var errs []error
	for _, lease := range former {
		if id := lease.Labels[sandboxLabel]; id != "" && lease.Labels[bootLabel] != boot {
			errs = append(errs, d.remove(ctx, id))
		}
	}
	return errors.Join(errs...)
}

// container makes the container of a sandbox, which is only its description.
func (d *daemon) container(ctx context.Context, p *process) error {
	config, err := typeurl.MarshalAny(p.config)
	if err != nil {
		return err
	}
	options, err := typeurl.MarshalAny(&runtimeoptions.Options{
		TypeUrl: runtimeName + ".options", ConfigPath: shimFile(p.spec.StateDir),
	})
	if err != nil {
		return err
	}
	return making(ctx, func(ctx context.Context) error {
		_, err := d.client.ContainerService().Create(ctx, containers.Container{
			ID: p.spec.ID, Spec: config, Runtime: containers.RuntimeInfo{Name: runtimeName, Options: options},
			Snapshotter: d.snapshotter, SnapshotKey: p.spec.ID,
		})
		return err
	})
}

// remove deletes everything that a sandbox has in the daemon after its task has ended. It
// is not an error if something does not exist.
func (d *daemon) remove(ctx context.Context, id string) error {
	steps := []struct {
		what string
		do   func() error
	}{
		{"container", func() error { return d.client.ContainerService().Delete(ctx, id) }},
		{"snapshot", func() error { return d.client.SnapshotService(d.snapshotter).Remove(ctx, id) }},
		{"lease", func() error { return d.client.LeasesService().Delete(ctx, leases.Lease{ID: leaseOf(id)}) }},
	}
	var errs []error
	for _, step := range steps {
		if err := step.do(); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("removing the %s of sandbox %q: %w", step.what, id, err))
		}
	}
	return errors.Join(errs...)
}

// deleteTask deletes a task, and is an error for as long as the daemon still has
// it. The list knows of tasks whose container is gone; deleting does not.
func (d *daemon) deleteTask(ctx context.Context, id string) error {
	_, deleteErr := d.client.TaskService().Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id})
	if deleteErr == nil {
		return nil
	}
	all, err := d.client.TaskService().List(ctx, &tasks.ListTasksRequest{})
	if err != nil {
		return errgrpc.ToNative(err)
	}
	for _, task := range all.GetTasks() {
		if task.GetID() == id {
			return errgrpc.ToNative(deleteErr)
		}
	}
	return nil
}

// record is what a StateDir keeps for Sweep.
type record struct {
	Address string `json:"address"` // of the daemon
	ID      string `json:"id"`
}

func recordFile(state string) string { return filepath.Join(state, "containerd.json") }

// writeRecord writes the record before anything of the sandbox is made.
func writeRecord(spec runner.Spec, address string) error {
	data, err := json.Marshal(record{Address: address, ID: spec.ID})
	if err != nil {
		return err
	}
	return os.WriteFile(recordFile(spec.StateDir), data, 0o600)
}

// readRecord returns the record of a sandbox; ok is false if it does not exist.
func readRecord(state string) (r record, ok bool, err error) {
	data, err := os.ReadFile(recordFile(state))
	if errors.Is(err, os.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	if err := strictjson.UnmarshalOpen(data, &r); err != nil {
		return r, false, fmt.Errorf("reading %q: %w", recordFile(state), err)
	}
	return r, r.ID != "", nil
}
