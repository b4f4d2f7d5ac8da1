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

// BuildOptions configure a build.
type BuildOptions struct {
	Home     string    // the state directory
	Name     string    // the image
	Progress io.Writer // gets a line for each step; nil for none
	Mirror   string    // the URL of a mirror of Debian; empty: Debian's own server
	Index    string    // the URL of the Python package index; empty: pip's configuration
	Registry string    // the URL of the npm registry; empty: npm's configuration
	Extra    Extra     // packages in addition to the image's own
	Fresh    bool      // fetch everything again, even if nothing has changed
}

// Built is what Build did.
type Built struct {
	Record
	Reused bool // the image already existed
}

// builder is one build of one image.
type builder struct {
	inputs
	dir    string // the directory of all images
	work   string // scratch of this build, on the same file system
	mirror string
	fresh  bool
	say    *progress

	pythonIndex string
	registry    string
}

// Build builds an image, unless it already exists, and makes it the one that Open returns.
// Concurrent builds run one after the other. A build that fails leaves the former image in
// place. A *MissingToolError names a program to install.
func Build(ctx context.Context, opts BuildOptions) (Built, error) {
	from, err := readInputs(opts.Name)
	if err != nil {
		return Built{}, err
	}
	return buildFrom(ctx, opts.Extra.apply(from), opts)
}

func buildFrom(ctx context.Context, from inputs, opts BuildOptions) (Built, error) {
	dir := store.Images(opts.Home)
	b := &builder{
		inputs: from,
		dir:    dir,
		work:   filepath.Join(dir, "work", from.directory()),
		mirror: opts.Mirror,
		fresh:  opts.Fresh,
		say:    newProgress(opts.Progress, from.directory()),

		pythonIndex: opts.Index,
		registry:    opts.Registry,
	}
	defer b.say.stop()
	built, err := b.buildLocked(ctx)
	if err != nil {
		return Built{}, fmt.Errorf("building image %q: %w", from.def.Name, err)
	}
	return built, nil
}

// buildLocked builds the image, if necessary, while it holds the locks of the build.
func (b *builder) buildLocked(ctx context.Context) (built Built, err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	for _, name := range b.locks() {
		lock, err := b.lock(ctx, name)
		if err != nil {
			return Built{}, err
		}
		undo.Add(lock.Release)
	}
	if record, ok := b.upToDate(); ok {
		return Built{Record: record, Reused: true}, nil
	}
	// Remove the files of a build that was killed.
	if err := errors.Join(os.RemoveAll(b.work), os.MkdirAll(b.work, 0o755)); err != nil {
		return Built{}, err
	}
	undo.Add(func() error { return os.RemoveAll(b.work) })
	record, err := b.build(ctx)
	return Built{Record: record}, err
}

// locks are the names of the locks of a build, in the order in which they are taken:
// its own, and that of the image whose base layer it shares.
func (b *builder) locks() []string {
	if own := b.directory(); own != b.baseName() {
		return []string{own, b.baseName()}
	}
	return []string{b.baseName()}
}

// lock makes the directories and waits until no other process builds the image of that name.
func (b *builder) lock(ctx context.Context, name string) (*store.Lock, error) {
	for _, directory := range []string{b.directory(), "bases", "work"} {
		if err := os.MkdirAll(filepath.Join(b.dir, directory), 0o755); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(b.dir, name+".lock")
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
	image, err := open(b.dir, b.inputs)
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
	layers, err := b.stageRootFS(ctx, filepath.Join(staged, "rootfs"), lower)
	if err != nil {
		return Record{}, err
	}
	record, err := b.record(layers)
	if err != nil {
		return Record{}, err
	}
	record.Digest, err = writeLayout(filepath.Join(staged, "oci"), b.def, labels(b.def, record), parts(layers)...)
	if err != nil {
		return Record{}, err
	}
	b.say.step("writing to disk")
	if err := b.publish(ctx, staged, record); err != nil {
		return Record{}, err
	}
	b.prune(record, layers)
	b.say.step(fmt.Sprintf("built %s, %d MiB", record.Digest, record.Size>>20))
	return record, nil
}

// madeLayer is one layer of an image and how it was made.
type madeLayer struct {
	base
	origin string
}

// stageRootFS unpacks the base layer to rootFS and, over it, the layer of packages, if the
// image has one, and Airlock's layer, which it creates. It returns all layers, lowest first.
func (b *builder) stageRootFS(ctx context.Context, rootFS string, lower base) ([]madeLayer, error) {
	// The umask must not close the root directory to the code's user.
	if err := errors.Join(os.MkdirAll(rootFS, 0o755), os.Chmod(rootFS, 0o755)); err != nil {
		return nil, err
	}
	b.say.step("unpacking the base layer")
	layers := []madeLayer{{lower, "airlock: Debian and npm packages"}}
	if err := unpackBlob(ctx, lower.blob, rootFS); err != nil {
		return nil, err
	}
	if b.hasPackages() {
		packages, err := b.packagesLayer(ctx, rootFS)
		if err != nil {
			return nil, err
		}
		b.say.step("unpacking the packages layer")
		if err := unpackBlob(ctx, packages.blob, rootFS); err != nil {
			return nil, err
		}
		layers = append(layers, madeLayer{packages, "airlock: packages"})
	}
	b.say.step("adding Airlock's own files")
	upper, err := b.ownLayer(ctx, rootFS)
	if err != nil {
		return nil, err
	}
	layers = append(layers, madeLayer{base{blob: upper}, "airlock: guest and client"})
	return layers, unpackBlob(ctx, upper, rootFS)
}

func parts(layers []madeLayer) []part {
	all := make([]part, 0, len(layers))
	for _, l := range layers {
		all = append(all, part{l.blob, l.origin})
	}
	return all
}

// ownLayer packs Airlock's own files, compiled by the interpreter in rootFS.
func (b *builder) ownLayer(ctx context.Context, rootFS string) (blob, error) {
	tree := filepath.Join(b.work, "own")
	if err := writeOwnFiles(tree, b.files); err != nil {
		return blob{}, err
	}
	if len(b.def.Bytecode) > 0 {
		if err := compilePython(ctx, rootFS, tree, b.ownDirectories()); err != nil {
			return blob{}, err
		}
	}
	if b.def.Bundle {
		if err := writeBundle(ctx, rootFS, tree); err != nil {
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

// record returns the contents of the image and the differences from the lock file.
func (b *builder) record(layers []madeLayer) (Record, error) {
	record := Record{Name: b.def.Name, Arch: hostArch, Inputs: b.key()}
	for _, l := range layers {
		record.Size += l.Size
		record.Packages = append(record.Packages, l.Packages...)
	}
	if len(b.locked) == 0 {
		record.Warnings = []string{"images.lock says nothing about the architecture " + hostArch}
		return record, nil
	}
	var err error
	record.Warnings, err = drift(b.locked, layers[0].Packages)
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
	final := filepath.Join(b.dir, b.directory(), hex)
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
	return store.WriteFile(filepath.Join(b.dir, b.directory(), currentFile), []byte(hex), 0o644)
}

// setDamagedAside moves away an image that does not match its digest, so that the build
// replaces it.
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
