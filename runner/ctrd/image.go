package ctrd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/containerd/api/types"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	built "github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/runner"
)

// importLeaseTime is the lifetime of an import's lease. If Airlock dies during the import,
// containerd removes the imported content after it.
const importLeaseTime = time.Hour

// maxManifest bounds a manifest, in bytes.
const maxManifest = 4 << 20

// imageRoot is what the daemon mounts as a sandbox's root file system: a view of
// the image in its snapshotter, which belongs to the sandbox's lease.
func (d *Driver) imageRoot(ctx context.Context, spec runner.Spec) ([]*types.Mount, error) {
	parent, err := d.imported(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	mounts, err := d.daemon.view(ctx, spec.ID, parent)
	if errdefs.IsNotFound(err) {
		// The image was removed from the daemon.
		d.forget(spec.Image.Digest)
		if parent, err = d.imported(ctx, spec.Image); err == nil {
			mounts, err = d.daemon.view(ctx, spec.ID, parent)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("making a snapshot of image %q: %w", spec.Image.Name, err)
	}
	if err := d.verified(ctx, spec.Image, mounts); err != nil {
		return nil, fmt.Errorf("checking the files of image %q (imported again after `ctr -n %s images rm %s`): %w",
			spec.Image.Name, namespace, recordName(spec.Image), err)
	}
	return mount.ToProto(mounts), nil
}

// verified proves that the files that the daemon mounts for a sandbox are those of the image. The
// daemon checked the archives that it unpacked, but does not detect later changes of the files. The
// contents are read once, and again after any change of a file.
func (d *Driver) verified(ctx context.Context, image runner.Image, mounts []mount.Mount) error {
	return mount.WithReadonlyTempMount(ctx, mounts, func(root string) error {
		found, err := stateOf(root)
		if err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.checked[image.Digest] == found {
			return nil
		}
		if err := built.VerifyDirectory(ctx, image.Layout, image.Digest, root); err != nil {
			return err
		}
		d.checked[image.Digest] = found
		return nil
	})
}

// stateOf returns a digest of the names, modes, sizes and times of change of all files below a
// directory. Nobody can set the time of change of a file.
func stateOf(root string) (digest.Digest, error) {
	state := digest.Canonical.Digester()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var s unix.Stat_t
		if err := unix.Lstat(path, &s); err != nil {
			return fmt.Errorf("reading the state of %q: %w", path, err)
		}
		_, err = fmt.Fprintf(state.Hash(), "%q %o %d %d\n", path[len(root):], s.Mode, s.Size, s.Ctim.Nano())
		return err
	})
	return state.Digest(), err
}

// imported returns the snapshot of an image, and imports the image if the daemon does not
// have it. Imports do not run concurrently.
func (d *Driver) imported(ctx context.Context, image runner.Image) (snapshot string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if snapshot, ok := d.images[image.Digest]; ok {
		return snapshot, nil
	}
	if snapshot, err = d.daemon.importImage(ctx, image); err != nil {
		return "", fmt.Errorf("importing image %q into containerd: %w", image.Name, err)
	}
	d.images[image.Digest] = snapshot
	return snapshot, nil
}

func (d *Driver) forget(digest string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.images, digest)
}

// view makes a read-only snapshot that belongs to the sandbox's lease.
func (d *daemon) view(ctx context.Context, key, parent string) (mounts []mount.Mount, err error) {
	err = making(leases.WithLease(ctx, leaseOf(key)), func(ctx context.Context) (err error) {
		mounts, err = d.client.SnapshotService(d.snapshotter).View(ctx, key, parent)
		return err
	})
	return mounts, err
}

// importImage sends an image from its OCI layout (OCI Image Format Specification, "Image
// Layout") to the daemon and unpacks it there. Content that the daemon already has is not
// sent again. The daemon verifies every digest, so the imported image is the one that its
// digest identifies.
func (d *daemon) importImage(ctx context.Context, image runner.Image) (snapshot string, err error) {
	if image.Layout == "" {
		return "", errors.New("there is no OCI layout of it")
	}
	want, err := digest.Parse(image.Digest)
	if err != nil {
		return "", err
	}
	ctx, done, err := d.client.WithLease(ctx, leases.WithRandomID(), leases.WithExpiration(importLeaseTime))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, done(context.WithoutCancel(ctx))) }()
	target, err := d.sendImage(ctx, image.Layout, want)
	if err != nil {
		return "", err
	}
	record := images.Image{Name: recordName(image), Target: target}
	if _, err := d.client.ImageService().Create(ctx, record); err != nil && !errdefs.IsAlreadyExists(err) {
		return "", err
	}
	known := containerd.NewImage(d.client, record)
	if err := known.Unpack(ctx, d.snapshotter); err != nil {
		return "", err
	}
	layers, err := known.RootFS(ctx)
	if err != nil {
		return "", err
	}
	return identity.ChainID(layers).String(), d.prune(ctx, image.Name, record.Name)
}

// recordName returns the name of an image in the daemon.
func recordName(image runner.Image) string { return "airlock/" + image.Name + "@" + image.Digest }

// prune removes the former builds of an image. Sandboxes that are made of one keep
// their snapshots; an Airlock that still wants one imports it again.
func (d *daemon) prune(ctx context.Context, name, current string) error {
	service := d.client.ImageService()
	all, err := service.List(ctx, fmt.Sprintf("name~=%q", "^airlock/"+name+"@"))
	if err != nil {
		return err
	}
	var errs []error
	for _, image := range all {
		if image.Name == current {
			continue
		}
		if err := service.Delete(ctx, image.Name); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sendImage sends a manifest and everything that it names.
func (d *daemon) sendImage(ctx context.Context, layout string, want digest.Digest) (ocispec.Descriptor, error) {
	data, err := os.ReadFile(blobFile(layout, want))
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	target := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: want, Size: int64(len(data))}
	var manifest ocispec.Manifest
	if len(data) > maxManifest || want.Algorithm().FromBytes(data) != want {
		return target, fmt.Errorf("the manifest is not what its digest %s says", want)
	}
	if err := strictjson.UnmarshalOpen(data, &manifest); err != nil {
		return target, err
	}
	// A reference to a blob keeps it from being collected.
	references := map[string]string{"containerd.io/gc.ref.content.config": manifest.Config.Digest.String()}
	for i, layer := range append([]ocispec.Descriptor{manifest.Config}, manifest.Layers...) {
		if err := d.sendBlob(ctx, layout, layer, nil); err != nil {
			return target, err
		}
		if i > 0 {
			references[fmt.Sprintf("containerd.io/gc.ref.content.l.%d", i-1)] = layer.Digest.String()
		}
	}
	return target, d.sendBlob(ctx, layout, target, references)
}

// sendBlob sends one file of a layout, unless the daemon has it.
func (d *daemon) sendBlob(ctx context.Context, layout string, blob ocispec.Descriptor, labels map[string]string) error {
	file, err := os.Open(blobFile(layout, blob.Digest))
	if err != nil {
		return err
	}
	defer file.Close()
	ref := "airlock-" + strings.ReplaceAll(blob.Digest.String(), ":", "-")
	store := d.client.ContentStore()
	if err := content.WriteBlob(ctx, store, ref, file, blob, content.WithLabels(labels)); err != nil {
		// The daemon keeps what came in, for another try.
		aborted := store.Abort(context.WithoutCancel(ctx), ref)
		if errdefs.IsNotFound(aborted) {
			aborted = nil
		}
		return errors.Join(err, aborted)
	}
	return nil
}

func blobFile(layout string, d digest.Digest) string {
	return filepath.Join(layout, "blobs", d.Algorithm().String(), d.Encoded())
}
