package images

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/images/layer"
	"github.com/airlock-mcp/airlock/internal/startuphooks"
	"github.com/airlock-mcp/airlock/sdk/python"
)

// sitePackages is the directory of Python packages in an image. Debian's interpreter searches
// it after the standard library. The guest does not import `site`, so start-up files of
// packages there do not run.
const sitePackages = "usr/lib/python3/dist-packages"

// maxPackages bounds the content of all packages of an image, in bytes.
const maxPackages = 2 << 30

// packagesLayer returns the layer with the builder's packages: the cached one, or a
// new one. rootFS has the base layer, whose interpreter compiles them.
func (b *builder) packagesLayer(ctx context.Context, rootFS string) (base, error) {
	return b.cached(b.directory()+"-packages", b.packagesKey(), func(dir string) error {
		return b.makePackages(ctx, rootFS, dir)
	})
}

func (b *builder) makePackages(ctx context.Context, rootFS, dir string) error {
	tree, err := os.MkdirTemp(b.work, "packages-")
	if err != nil {
		return err
	}
	packages := b.wheels
	if len(b.wheels) > 0 {
		if err := b.addWheels(ctx, tree); err != nil {
			return err
		}
		b.say.step("compiling Python packages")
		if err := compilePackages(ctx, rootFS, tree); err != nil {
			return err
		}
	}
	if len(b.modules) > 0 {
		if err := b.addModules(ctx, tree); err != nil {
			return err
		}
		if packages, err = listModules(b.modules, filepath.Join(tree, nodeModules)); err != nil {
			return err
		}
	}
	return b.writeCached(ctx, "packages", tree, dir, packages)
}

// addWheels downloads the locked wheels and unpacks them below tree. Nothing of them runs.
func (b *builder) addWheels(ctx context.Context, tree string) error {
	target := filepath.Join(tree, sitePackages)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(b.work, "wheels-")
	if err != nil {
		return err
	}
	b.say.step(fmt.Sprintf("downloading %d Python packages", len(b.wheels)))
	files, err := pip{arch: hostArch, index: b.pythonIndex}.download(ctx, b.wheels, scratch)
	if err != nil {
		return err
	}
	b.say.step("unpacking Python packages")
	place, err := layer.NewZip(target, maxPackages)
	if err != nil {
		return err
	}
	defer place.Close()
	var drop []string
	if b.def.Wheels != nil {
		drop = b.def.Wheels.Drop
	}
	for i, file := range files {
		if err := place.Unpack(ctx, file, func(name string) string { return wheelTarget(name, drop) }); err != nil {
			return fmt.Errorf("unpacking the Python package %q: %w", b.wheels[i].Name, err)
		}
	}
	for _, name := range place.Replaced {
		b.say.step(fmt.Sprintf("two packages have the file %q: the one of the later package, by name, is used", name))
	}
	return os.RemoveAll(scratch)
}

// wheelTarget returns the destination of a wheel's file, relative to sitePackages ("Binary
// distribution format" of the Python Packaging User Guide), or "" to skip it. Programs, headers
// and other data are skipped. Start-up hooks are skipped too: the guest would not run them, and
// an image with one is refused at start.
func wheelTarget(name string, drop []string) string {
	top, rest, nested := strings.Cut(name, "/")
	if nested && strings.HasSuffix(top, ".data") {
		kind, below, _ := strings.Cut(rest, "/")
		if kind != "purelib" && kind != "platlib" {
			return ""
		}
		name = below
	}
	if name == "" || isLeftover(name) || startuphooks.IsHook(name) || pathMatches(name, drop) {
		return ""
	}
	return name
}

// sdkFiles are the packages of sdk/python: path in the image → content.
func sdkFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(python.Source, "src", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || isLeftover(file) || !strings.HasPrefix(file, "src/qwed_") ||
			strings.Contains(file, ".egg-info/") {
			return err
		}
		content, err := python.Source.ReadFile(file)
		files[path.Join(sitePackages, strings.TrimPrefix(file, "src/"))] = content
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the packages of sdk/python: %w", err)
	}
	return files, nil
}

// lockWheels returns the wheels of one of Airlock's images for an architecture.
func lockWheels(ctx context.Context, def Definition, arch, index, dir string) ([]Package, error) {
	requirements, err := python.Source.ReadFile(def.Wheels.Requirements)
	if err != nil {
		return nil, err
	}
	return pip{arch: arch, index: index}.resolve(ctx, replaced(requirements, def.Wheels.Other[arch]), true, dir)
}

// replaced puts others in the place of the named requirements of a file in pip's
// format, whose hashes are on the lines that continue them.
func replaced(requirements []byte, others map[string]string) []byte {
	var lines []string
	skipping := false
	for _, line := range strings.Split(string(requirements), "\n") {
		if name, _, ok := strings.Cut(line, "=="); ok && !strings.HasPrefix(line, " ") {
			var other string
			if other, skipping = others[normalName(name)]; other != "" {
				lines = append(lines, name+other)
			}
		}
		if !skipping {
			lines = append(lines, line)
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// fileDigest is the SHA-256 of a file, as "sha256:" and hexadecimal digits.
func fileDigest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hashing %q: %w", path, err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hashing %q: %w", path, err)
	}
	return digestString(hash), nil
}
