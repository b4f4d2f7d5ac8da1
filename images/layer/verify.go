package layer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
)

// entry is what a file system's object must be.
type entry struct {
	mode   fs.FileMode
	size   int64
	target string // of a symbolic link
	sum    string // of a regular file's content
}

// Tree is what a root file system must hold, entry by entry. The zero value is
// an empty tree.
type Tree struct {
	entries map[string]entry
	hash    hash.Hash // of one content after the other
}

// Add reads a layer as Write makes it and puts its entries over those that are there.
func (t *Tree) Add(ctx context.Context, r io.Reader) error {
	if t.entries == nil {
		t.entries = map[string]entry{}
		t.hash, _ = NewHash()
	}
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("reading a layer: %w", err)
		}
		name, err := cleanName(header.Name)
		if err != nil {
			return fmt.Errorf("reading a layer: %w", err)
		}
		e, err := t.expected(header, archive)
		if err != nil {
			return fmt.Errorf("reading a layer: entry %q: %w", name, err)
		}
		t.entries[name] = e
		t.addParents(name)
	}
}

// addParents adds the directories that Unpack makes though no entry mentions them.
func (t *Tree) addParents(name string) {
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if _, ok := t.entries[parent]; !ok {
			t.entries[parent] = entry{mode: fs.ModeDir | 0o755}
		}
	}
}

func (t *Tree) expected(header *tar.Header, content io.Reader) (entry, error) {
	info := header.FileInfo()
	e := entry{mode: info.Mode().Type() | plainMode(info.Mode())}
	switch header.Typeflag {
	case tar.TypeDir:
		return e, nil
	case tar.TypeSymlink:
		e.target = header.Linkname
		return e, nil
	case tar.TypeReg:
		e.size = header.Size
		var err error
		e.sum, err = t.digest(content)
		return e, err
	}
	return entry{}, fmt.Errorf("type %q is in no layer of Airlock", header.Typeflag)
}

func (t *Tree) digest(r io.Reader) (string, error) {
	t.hash.Reset()
	_, err := io.Copy(t.hash, r)
	return string(t.hash.Sum(nil)), err
}

// Check reads everything below dir and returns an error that names the first
// object which differs from the tree, is missing, or should not be there. Owners
// and times are not compared.
func (t *Tree) Check(ctx context.Context, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("checking %q: %w", dir, err)
	}
	defer root.Close()
	found := 0
	walk := func(name string, object fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if name == "." {
			return t.check(entry{mode: fs.ModeDir | 0o755}, root, name, object)
		}
		want, ok := t.entries[name]
		if !ok {
			return fmt.Errorf("%q should not be there", name)
		}
		found++
		return t.check(want, root, name, object)
	}
	if err := fs.WalkDir(root.FS(), ".", walk); err != nil {
		return fmt.Errorf("checking %q: %w", dir, err)
	}
	if found < len(t.entries) {
		return fmt.Errorf("checking %q: %q is missing", dir, t.firstMissing(root))
	}
	return nil
}

func (t *Tree) check(e entry, root *os.Root, name string, object fs.DirEntry) error {
	info, err := object.Info()
	if err != nil {
		return err
	}
	if info.Mode() != e.mode {
		return fmt.Errorf("%q has mode %v, want %v", name, info.Mode(), e.mode)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		if err == nil && target != e.target {
			err = fmt.Errorf("%q leads to %q, want %q", name, target, e.target)
		}
		return err
	case info.Mode().IsRegular():
		return t.checkContent(e, root, name, info.Size())
	}
	return nil
}

func (t *Tree) checkContent(e entry, root *os.Root, name string, size int64) error {
	if size != e.size {
		return fmt.Errorf("%q has %d bytes, want %d", name, size, e.size)
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	sum, err := t.digest(file)
	if err == nil && sum != e.sum {
		err = fmt.Errorf("the content of %q was changed", name)
	}
	return err
}

// firstMissing returns the first name, in lexical order, that the tree has and
// root has not.
func (t *Tree) firstMissing(root *os.Root) string {
	first := ""
	for name := range t.entries {
		if _, err := root.Lstat(name); err != nil && (first == "" || name < first) {
			first = name
		}
	}
	return first
}
