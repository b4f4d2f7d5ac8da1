package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/images/layer"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
)

// BuildOptions say what to build and where.
type BuildOptions struct {
	Home     string    // the state directory
	Name     string    // the image
	Progress io.Writer // gets a line for each step; nil for none
	Mirror   string    // where Debian's packages come from; empty: Debian's own place
	Fresh    bool      // fetch everything again, though nothing asks for it
}

// Built is what Build did.
type Built struct {
	Record
	Reused bool // the image was there already
}

// builder is one build of one image.
type builder struct {
	inputs
	dir    string // the directory of all images
	work   string // scratch of this build, on the same file system
	mirror string
	fresh  bool
	say    *progress
}

// Build builds an image, unless this very image is there, and makes it the one
// that Open finds. Concurrent builds take turns; a build that ends half way
// leaves the former image in place. A *MissingToolError names a program to install.
func Build(ctx context.Context, opts BuildOptions) (Built, error) {
	from, err := readInputs(opts.Name)
	if err != nil {
		return Built{}, err
	}
	return buildFrom(ctx, from, opts)
}

func buildFrom(ctx context.Context, from inputs, opts BuildOptions) (Built, error) {
	dir := store.Images(opts.Home)
	b := &builder{
		inputs: from,
		dir:    dir,
		work:   filepath.Join(dir, "work", from.def.Name),
		mirror: opts.Mirror,
		fresh:  opts.Fresh,
		say:    newProgress(opts.Progress, from.def.Name),
	}
	defer b.say.stop()
	built, err := b.buildAlone(ctx)
	if err != nil {
		return Built{}, fmt.Errorf("building image %q: %w", from.def.Name, err)
	}
	return built, nil
}

// buildAlone builds, if there is anything to do, while no other process does.
func (b *builder) buildAlone(ctx context.Context) (built Built, err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	lock, err := b.lock(ctx)
	if err != nil {
		return Built{}, err
	}
	undo.Add(lock.Release)
	if record, ok := b.upToDate(); ok {
		return Built{Record: record, Reused: true}, nil
	}
	// What a build that was killed left is in the way.
	if err := errors.Join(os.RemoveAll(b.work), os.MkdirAll(b.work, 0o755)); err != nil {
		return Built{}, err
	}
	undo.Add(func() error { return os.RemoveAll(b.work) })
	record, err := b.build(ctx)
	return Built{Record: record}, err
}

// lock makes the directories and waits until no other process builds this image.
func (b *builder) lock(ctx context.Context) (*store.Lock, error) {
	for _, directory := range []string{b.def.Name, "bases", "work"} {
		if err := os.MkdirAll(filepath.Join(b.dir, directory), 0o755); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(b.dir, b.def.Name+".lock")
	lock, err := store.TryAcquire(path, store.Exclusive)
	if errors.Is(err, store.ErrLocked) {
		b.say.step("waiting for another process that builds this image")
		return store.Acquire(ctx, path, store.Exclusive)
	}
	return lock, err
}

func (b *builder) upToDate() (Record, bool) {
	if b.fresh {
		return Record{}, false
	}
	image, err := open(b.dir, b.def)
	if err != nil {
		return Record{}, false
	}
	return image.Record, image.Close() == nil && image.Record.Inputs == b.key()
}

func (b *builder) build(ctx context.Context) (Record, error) {
	lower, err := b.base(ctx)
	if err != nil {
		return Record{}, err
	}
	staged := filepath.Join(b.work, "image")
	upper, err := b.stageRootFS(ctx, filepath.Join(staged, "rootfs"), lower.blob)
	if err != nil {
		return Record{}, err
	}
	record, err := b.record(lower, upper)
	if err != nil {
		return Record{}, err
	}
	parts := []part{{lower.blob, "airlock: Debian and npm packages"}, {upper, "airlock: guest and client"}}
	record.Digest, err = writeLayout(filepath.Join(staged, "oci"), b.def, labels(b.def, record), parts...)
	if err != nil {
		return Record{}, err
	}
	b.say.step("writing to disk")
	if err := b.publish(ctx, staged, record); err != nil {
		return Record{}, err
	}
	b.prune(record, filepath.Dir(lower.path))
	b.say.step("built " + record.Digest)
	return record, nil
}

// stageRootFS unpacks the base layer to rootFS and, over it, Airlock's own
// layer, which it makes and returns.
func (b *builder) stageRootFS(ctx context.Context, rootFS string, lower blob) (blob, error) {
	// The umask must not close the root directory to the code's user.
	if err := errors.Join(os.MkdirAll(rootFS, 0o755), os.Chmod(rootFS, 0o755)); err != nil {
		return blob{}, err
	}
	b.say.step("unpacking the base layer")
	if err := unpackBlob(ctx, lower, rootFS); err != nil {
		return blob{}, err
	}
	b.say.step("adding Airlock's own files")
	upper, err := b.ownLayer(ctx, rootFS)
	if err != nil {
		return blob{}, err
	}
	return upper, unpackBlob(ctx, upper, rootFS)
}

// ownLayer packs Airlock's own files, compiled by the interpreter in rootFS.
func (b *builder) ownLayer(ctx context.Context, rootFS string) (blob, error) {
	tree := filepath.Join(b.work, "own")
	if err := writeOwnFiles(tree, b.files); err != nil {
		return blob{}, err
	}
	if len(b.def.Bytecode) > 0 {
		if err := compilePython(ctx, rootFS, tree, []string{guestRoot}); err != nil {
			return blob{}, err
		}
	}
	return writeLayer(ctx, filepath.Join(b.work, layerFile), tree)
}

func unpackBlob(ctx context.Context, from blob, dir string) error {
	file, err := os.Open(from.path)
	if err != nil {
		return fmt.Errorf("unpacking a layer: %w", err)
	}
	return errors.Join(layer.Unpack(ctx, file, dir, nil), file.Close())
}

// record says what the image holds and how that differs from the lock.
func (b *builder) record(lower base, upper blob) (Record, error) {
	record := Record{
		Name: b.def.Name, Arch: hostArch, Inputs: b.key(),
		Size: lower.Size + upper.Size, Packages: lower.Packages,
	}
	if len(b.locked) == 0 {
		record.Warnings = []string{"images.lock says nothing about the architecture " + hostArch}
		return record, nil
	}
	var err error
	record.Warnings, err = drift(b.locked, lower.Packages)
	return record, err
}

func labels(def Definition, record Record) map[string]string {
	var packages []string
	for _, pkg := range record.Packages {
		packages = append(packages, pkg.Name+" "+pkg.Version)
	}
	labels := map[string]string{
		labelTitle:    "airlock/" + def.Name,
		labelSummary:  def.Summary,
		labelPackages: strings.Join(packages, "\n"),
	}
	if len(record.Warnings) > 0 {
		labels[labelDifference] = strings.Join(record.Warnings, "\n")
	}
	return labels
}

// publish makes the staged image the current one.
func (b *builder) publish(ctx context.Context, staged string, record Record) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	hex := strings.TrimPrefix(record.Digest, "sha256:")
	final := filepath.Join(b.dir, b.def.Name, hex)
	if err := b.setDamagedAside(ctx, final); err != nil {
		return err
	}
	if err := store.PublishDir(staged, final); err != nil {
		return err
	}
	// Other inputs may give an image that is there already: its record changes.
	if err := store.WriteFile(filepath.Join(final, recordFile), text, 0o644); err != nil {
		return err
	}
	return store.WriteFile(filepath.Join(b.dir, b.def.Name, currentFile), []byte(hex), 0o644)
}

// setDamagedAside moves away an image that is no longer what its digest says,
// so that building again heals it.
func (b *builder) setDamagedAside(ctx context.Context, final string) error {
	image, err := openDirectory(final, b.def)
	if errors.Is(err, os.ErrNotExist) && !exists(final) {
		return nil
	}
	if err == nil {
		err = errors.Join(Verify(ctx, image), image.Close())
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	b.say.step("replacing a damaged image")
	return os.Rename(final, filepath.Join(b.work, "damaged"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
