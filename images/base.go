package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/images/layer"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Files of a cached base and of an image.
const (
	layerFile  = "layer.tar"
	recordFile = "record.json"
)

// blob is a layer's archive in a file. Layers are not compressed: their digest
// then depends on no compressor, and they never travel.
type blob struct {
	Digest string `json:"digest"` // "sha256:…"
	Size   int64  `json:"size"`   // bytes
	path   string
}

// base is a cached base layer.
type base struct {
	blob
	Packages []Package `json:"packages"` // what went in
}

// base returns the base layer for the builder's definition: the cached one, or a new one if
// the cache has none or a fresh one was requested.
func (b *builder) base(ctx context.Context) (base, error) {
	return b.cached(b.baseName(), b.baseKey(), func(dir string) error { return b.makeBase(ctx, dir) })
}

// cached returns the layer with the name and key, from an earlier build or created by fill in
// the directory that is passed to it.
func (b *builder) cached(name, key string, fill func(dir string) error) (base, error) {
	dir := filepath.Join(b.dir, "bases", name+"-"+key)
	if !b.fresh {
		if cached, err := readBase(dir); err == nil {
			b.say.step("using the layer " + name + " of an earlier build")
			return cached, nil
		}
	}
	staged, err := os.MkdirTemp(b.work, "base-")
	if err != nil {
		return base{}, fmt.Errorf("building the layer %q: %w", name, err)
	}
	if err := fill(staged); err != nil {
		return base{}, fmt.Errorf("building the layer %q: %w", name, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return base{}, fmt.Errorf("replacing the cached layer %q: %w", name, err)
	}
	if err := store.PublishDir(staged, dir); err != nil {
		return base{}, err
	}
	return readBase(dir)
}

func readBase(dir string) (base, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return base{}, fmt.Errorf("reading the cached base layer: %w", err)
	}
	found := base{blob: blob{path: filepath.Join(dir, layerFile)}}
	if err := strictjson.UnmarshalOpen(text, &found); err != nil {
		return base{}, fmt.Errorf("reading the cached base layer %q: %w", dir, err)
	}
	return found, found.check()
}

// check proves that the archive is still what it was.
func (b blob) check() error {
	file, err := os.Open(b.path)
	if err != nil {
		return fmt.Errorf("checking a layer: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return fmt.Errorf("checking a layer: %w", err)
	}
	if got := digestString(hash); got != b.Digest {
		return fmt.Errorf("layer %q has the digest %s, want %s", b.path, got, b.Digest)
	}
	return nil
}

func digestString(sum hash.Hash) string { return "sha256:" + hex.EncodeToString(sum.Sum(nil)) }

// makeBase fetches everything and leaves the layer and its record in dir.
func (b *builder) makeBase(ctx context.Context, dir string) error {
	rootFS, err := os.MkdirTemp(b.work, "rootfs-")
	if err != nil {
		return err
	}
	fetch := debianFetch{Debian: b.def.Debian, arch: hostArch, mirror: b.mirror, say: b.say}
	packages, err := fetch.extract(ctx, rootFS)
	if err != nil {
		return err
	}
	fromNPM, err := b.addNPM(ctx, rootFS)
	if err != nil {
		return err
	}
	if packages = append(packages, fromNPM...); len(b.locked) > 0 {
		if _, err := drift(b.locked, packages); err != nil {
			return err
		}
	}
	if err := addLinks(rootFS, b.def.Links); err != nil {
		return err
	}
	if len(b.def.Bytecode) > 0 {
		b.say.step("compiling Python files")
		if err := compilePython(ctx, rootFS, rootFS, b.def.Bytecode); err != nil {
			return err
		}
	}
	return b.writeCached(ctx, "base", rootFS, dir, packages)
}

// writeCached packs a tree, which is removed, and leaves the layer and its record in dir.
func (b *builder) writeCached(ctx context.Context, name, tree, dir string, packages []Package) error {
	b.say.step("packing the " + name + " layer")
	made, err := writeLayer(ctx, filepath.Join(dir, layerFile), tree)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(base{blob: made, Packages: packages}, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, recordFile), text, 0o644), os.RemoveAll(tree))
}

func (b *builder) addNPM(ctx context.Context, rootFS string) ([]Package, error) {
	name, err := b.def.npmPackage(hostArch)
	if name == "" {
		return nil, err
	}
	scratch, err := os.MkdirTemp(b.work, "npm-")
	if err != nil {
		return nil, err
	}
	pkg, err := extractNPM(ctx, *b.def.NPM, name, rootFS, scratch, b.say)
	return []Package{pkg}, errors.Join(err, os.RemoveAll(scratch))
}

// addLinks makes what Debian's packages leave to their scripts.
func addLinks(rootFS string, links map[string]string) error {
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(rootFS, name)); err != nil {
			return fmt.Errorf("adding a link: %w", err)
		}
	}
	return nil
}

// writeLayer packs the tree below dir into the new file at path.
func writeLayer(ctx context.Context, path, dir string) (blob, error) {
	file, err := os.Create(path)
	if err != nil {
		return blob{}, fmt.Errorf("packing a layer: %w", err)
	}
	hash := sha256.New()
	counted := &counter{}
	err = layer.Write(ctx, io.MultiWriter(file, hash, counted), dir)
	if err := errors.Join(err, file.Close()); err != nil {
		return blob{}, err
	}
	return blob{Digest: digestString(hash), Size: counted.bytes, path: path}, nil
}

// counter counts the bytes written to it.
type counter struct {
	bytes int64
}

// Write counts p.
func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}
