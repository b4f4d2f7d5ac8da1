package ctrd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"

	"github.com/airlock-mcp/airlock/runner"
)

// Resources lists what sandboxes have in the daemon.
func Resources(t *testing.T, d *Driver) []string {
	t.Helper()
	ctx, client := t.Context(), d.daemon.client
	var all []string
	running, err := client.TaskService().List(ctx, &tasks.ListTasksRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range running.GetTasks() {
		all = append(all, "task "+task.GetID())
	}
	made, err := client.ContainerService().List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, container := range made {
		all = append(all, "container "+container.ID)
	}
	err = client.SnapshotService(d.daemon.snapshotter).Walk(ctx, func(_ context.Context, info snapshots.Info) error {
		if info.Kind != snapshots.KindCommitted { // those are the images
			all = append(all, "snapshot "+info.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// That of an import has no such label, and expires.
	held, err := client.LeasesService().List(ctx, fmt.Sprintf("labels.%q", sandboxLabel))
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range held {
		all = append(all, "lease "+lease.ID)
	}
	return all
}

// LeaveFormer leaves in the daemon what a sandbox had before the host was started
// anew: a lease and a snapshot.
func LeaveFormer(t *testing.T, d *Driver, id string) {
	t.Helper()
	labels := map[string]string{sandboxLabel: id, bootLabel: "00000000-0000-0000-0000-000000000000"}
	_, err := d.daemon.client.LeasesService().Create(t.Context(), leases.WithID(leaseOf(id)), leases.WithLabels(labels))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.daemon.view(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
}

// Images lists the names of all images.
func Images(t *testing.T, d *Driver) []string {
	t.Helper()
	all, err := d.daemon.client.ImageService().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, image := range all {
		names = append(names, image.Name)
	}
	return names
}

// AddFormer names the first image as if it were a former build of it, too.
func AddFormer(t *testing.T, d *Driver, name string) {
	t.Helper()
	all, err := d.daemon.client.ImageService().List(t.Context())
	if err != nil || len(all) == 0 {
		t.Fatal("there is no image", err)
	}
	former := images.Image{Name: name, Target: all[0].Target}
	if _, err := d.daemon.client.ImageService().Create(t.Context(), former); err != nil {
		t.Fatal(err)
	}
}

// RemoveImages removes all images, and their snapshots with them.
func RemoveImages(t *testing.T, d *Driver) {
	t.Helper()
	all, err := d.daemon.client.ImageService().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range all {
		if err := d.daemon.client.ImageService().Delete(
			t.Context(), image.Name, images.SynchronousDelete()); err != nil {
			t.Fatal(err)
		}
	}
}

// Layers returns the directories of the layers of an image that a sandbox would be started from, the
// lowest last.
func Layers(t *testing.T, d *Driver, image runner.Image) []string {
	t.Helper()
	parent, err := d.imported(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	const key = "layers"
	service := d.daemon.client.SnapshotService(d.daemon.snapshotter)
	mounts, err := service.View(t.Context(), key, parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Remove(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	for _, option := range mounts[0].Options {
		if lower, ok := strings.CutPrefix(option, "lowerdir="); ok {
			return strings.Split(lower, ":")
		}
	}
	return []string{mounts[0].Source}
}
