package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/airlock-mcp/airlock/images/layer"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Errors of Open that are fixed by `airlock images build`.
var (
	ErrNotBuilt = errors.New("the image is not built")
	ErrStale    = errors.New("the image was built by another version of Airlock")
)

// currentFile names the directory of the image that is in use.
const currentFile = "current"

// Image is a built image. While it is open, a newer build leaves it in place.
type Image struct {
	Name   string
	Digest string   // "sha256:…" of the OCI manifest
	RootFS string   // directory on the host with the unpacked root file system
	Layout string   // directory on the host with the image as an OCI layout
	Args   []string // the guest program and its arguments
	Env    []string // the whole environment; nothing is inherited
	Fresh  bool     // see Definition
	Record Record   // what went in
	hold   *store.Lock
}

// Record is what is known about a built image.
type Record struct {
	Name     string    `json:"name"`
	Digest   string    `json:"digest"`             // "sha256:…" of the OCI manifest
	Arch     string    `json:"arch"`               // Go's name of it
	Inputs   string    `json:"inputs"`             // digest of what it was made from
	Size     int64     `json:"size"`               // bytes of all layers
	Packages []Package `json:"packages"`           // what went in
	Warnings []string  `json:"warnings,omitempty"` // how it differs from images.lock
}

// Open returns the built image of that name in the state directory home. It reads
// the record only; Verify reads everything. Errors: ErrUnknown, ErrNotBuilt,
// ErrStale. The caller calls Close when no sandbox uses the image any more.
func Open(home, name string) (Image, error) {
	find := own()[name]
	if find == nil {
		_, err := Find(name)
		return Image{}, err
	}
	image, err := find()
	if err != nil {
		return Image{}, err
	}
	return openKeyed(home, inputs{def: image.def}, image.key)
}

// ownImage is an image as this program would build it.
type ownImage struct {
	def Definition
	key string
}

// own returns the images of this program by name. The embedded inputs of an image are read
// and hashed once, when it is first requested.
var own = sync.OnceValue(func() map[string]func() (ownImage, error) {
	all := map[string]func() (ownImage, error){}
	for _, name := range names {
		all[name] = sync.OnceValues(func() (ownImage, error) {
			wanted, err := readInputs(name)
			if err != nil {
				return ownImage{}, err
			}
			return ownImage{wanted.def, wanted.key()}, nil
		})
	}
	return all
})

// OpenWith is Open for an image that has other packages beside its own.
func OpenWith(home, name string, extra Extra) (Image, error) {
	wanted, err := readInputs(name)
	if err != nil {
		return Image{}, err
	}
	return openWanted(home, extra.apply(wanted))
}

func openWanted(home string, wanted inputs) (Image, error) {
	return openKeyed(home, wanted, wanted.key())
}

// openKeyed opens the current image if it was built from inputs with the key, or returns
// ErrStale.
func openKeyed(home string, wanted inputs, key string) (Image, error) {
	image, err := open(store.Images(home), wanted)
	if err != nil {
		return Image{}, err
	}
	if image.Record.Inputs != key {
		return Image{}, errors.Join(fmt.Errorf("opening image %q: %w", image.Name, ErrStale), image.Close())
	}
	return image, nil
}

// maxOpens bounds how often open follows a pointer that a build just moved.
const maxOpens = 3

// open opens the current image.
func open(dir string, wanted inputs) (Image, error) {
	def := wanted.def
	for range maxOpens {
		current, err := store.ReadFile(filepath.Join(dir, wanted.directory(), currentFile))
		if errors.Is(err, fs.ErrNotExist) {
			return Image{}, fmt.Errorf("opening image %q: %w", def.Name, ErrNotBuilt)
		}
		if err != nil {
			return Image{}, fmt.Errorf("opening image %q: %w", def.Name, err)
		}
		image, err := openDirectory(filepath.Join(dir, wanted.directory(), string(current)), def)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrLocked) {
			return image, err
		}
	}
	return Image{}, fmt.Errorf("opening image %q: %w: its directory is gone", def.Name, ErrNotBuilt)
}

// openDirectory holds the directory, so that prune leaves it, and reads its record. A
// directory that prune took meanwhile is an fs.ErrNotExist.
func openDirectory(directory string, def Definition) (Image, error) {
	hold, err := store.TryHold(directory, store.Shared)
	if errors.Is(err, fs.ErrPermission) {
		hold, err = &store.Lock{}, nil // another user's image: its owner may remove it while it is used
	}
	if err != nil {
		return Image{}, fmt.Errorf("opening image %q: %w", def.Name, err)
	}
	record, err := readRecord(directory)
	if err == nil && record.Digest != digestOf(directory) {
		err = fmt.Errorf("directory %q says to be image %s", directory, record.Digest)
	}
	if err != nil {
		return Image{}, errors.Join(fmt.Errorf("opening image %q: %w", def.Name, err), hold.Release())
	}
	return Image{
		Name:   def.Name,
		Digest: record.Digest,
		RootFS: filepath.Join(directory, "rootfs"),
		Layout: filepath.Join(directory, "oci"),
		Args:   slices.Clone(def.Args),
		Env:    slices.Clone(def.Env),
		Fresh:  def.Fresh,
		Record: record,
		hold:   hold,
	}, nil
}

// digestOf is the digest that an image's directory is named for.
func digestOf(directory string) string { return "sha256:" + filepath.Base(directory) }

// Records returns the records of all images that are built in the state directory home,
// including images with a user's packages. Unreadable records are left out.
func Records(home string) []Record {
	var records []Record
	for _, directory := range subdirectories(store.Images(home)) {
		current, err := store.ReadFile(filepath.Join(directory, currentFile))
		if err != nil {
			continue
		}
		if record, err := readRecord(filepath.Join(directory, string(current))); err == nil {
			records = append(records, record)
		}
	}
	return records
}

func readRecord(directory string) (Record, error) {
	text, err := store.ReadFile(filepath.Join(directory, recordFile))
	if err != nil {
		return Record{}, err
	}
	var record Record
	if err := strictjson.UnmarshalOpen(text, &record); err != nil {
		return Record{}, fmt.Errorf("reading %q: %w", filepath.Join(directory, recordFile), err)
	}
	return record, nil
}

// Close lets a newer build remove the image. Calling it twice is fine.
func (i Image) Close() error { return i.hold.Release() }

// VerifyDirectory reads the directory root and the OCI layout of an image, and proves that the
// directory has what the image's digest identifies. Owners and times are not compared.
func VerifyDirectory(ctx context.Context, layout, digest, root string) error {
	tree, err := layer.OpenTree(root)
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := readLayout(layout, digest, func(r io.Reader) error { return tree.Add(ctx, r) }); err != nil {
		return err
	}
	return tree.Check(ctx)
}

// Verify reads the whole image and proves that the root file system, as a directory and as
// the file that sandboxes run from, is what the image's digest identifies, byte for
// byte. It takes about a second.
func Verify(ctx context.Context, image Image) error {
	err := VerifyDirectory(ctx, image.Layout, image.Digest, image.RootFS)
	if err == nil {
		err = verifyFileSystem(ctx, image.RootFS)
	}
	if err != nil {
		return fmt.Errorf("verifying image %q: %w", image.Name, err)
	}
	return nil
}
