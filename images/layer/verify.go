package layer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// entry is what a file system's object must be.
type entry struct {
	mode   fs.FileMode
	size   int64
	target string // of a symbolic link
	differ error  // from the regular file in the root file system
}

// Tree is what a root file system must hold, entry by entry.
type Tree struct {
	root      *os.Root
	entries   map[string]entry
	got, want []byte // parts of two contents
}

// OpenTree returns an empty tree, for the root file system in dir. The caller must close it.
func OpenTree(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	const part = 128 << 10
	return &Tree{root: root, entries: map[string]entry{}, got: make([]byte, part), want: make([]byte, part)}, nil
}

// Close ends the use of the directory.
func (t *Tree) Close() error { return t.root.Close() }

// Add reads a layer as Write makes it, compares it with the root file system, and puts its entries over those that are
// there.
func (t *Tree) Add(ctx context.Context, r io.Reader) error {
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
		e, err := t.expected(name, header, archive)
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

func (t *Tree) expected(name string, header *tar.Header, content io.Reader) (entry, error) {
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
		err := t.compare(&e, name, content)
		return e, err
	}
	return entry{}, fmt.Errorf("type %q is in no layer of Airlock", header.Typeflag)
}

// changedError names a regular file with another content.
type changedError string

// Error describes it.
func (e changedError) Error() string { return fmt.Sprintf("the content of %q was changed", string(e)) }

// compare compares the regular file of the root file system with what e expects, and this content. An error is one of
// the content.
func (t *Tree) compare(e *entry, name string, content io.Reader) error {
	e.differ = changedError(name)
	file, err := t.root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // which waits for no pipe
	if err != nil {
		e.differ = err
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		e.differ = err
		return nil
	}
	if !info.Mode().IsRegular() || info.Size() != e.size {
		return nil
	}
	for left := e.size; left > 0; {
		want := t.want[:min(left, int64(len(t.want)))]
		if _, err := io.ReadFull(content, want); err != nil {
			return err
		}
		got := t.got[:len(want)]
		if _, err := io.ReadFull(file, got); err != nil {
			e.differ = fmt.Errorf("reading %q: %w", name, err)
			return nil
		}
		if !bytes.Equal(got, want) {
			return nil
		}
		left -= int64(len(want))
	}
	e.differ = nil
	return nil
}

// Check looks at everything in the root file system, and returns an error that names the first object which differs
// from the tree, is missing, or should not be there. Owners and times are not compared.
func (t *Tree) Check(ctx context.Context) error {
	found := 0
	walk := func(name string, object fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if name == "." {
			return t.check(entry{mode: fs.ModeDir | 0o755}, name, object)
		}
		want, ok := t.entries[name]
		if !ok {
			return fmt.Errorf("%q should not be there", name)
		}
		found++
		return t.check(want, name, object)
	}
	if err := fs.WalkDir(t.root.FS(), ".", walk); err != nil {
		return fmt.Errorf("checking %q: %w", t.root.Name(), err)
	}
	if found < len(t.entries) {
		return fmt.Errorf("checking %q: %q is missing", t.root.Name(), t.firstMissing())
	}
	return nil
}

func (t *Tree) check(e entry, name string, object fs.DirEntry) error {
	info, err := object.Info()
	if err != nil {
		return err
	}
	if info.Mode() != e.mode {
		return fmt.Errorf("%q has mode %v, want %v", name, info.Mode(), e.mode)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := t.root.Readlink(name)
		if err == nil && target != e.target {
			err = fmt.Errorf("%q leads to %q, want %q", name, target, e.target)
		}
		return err
	case info.Mode().IsRegular() && info.Size() != e.size:
		return fmt.Errorf("%q has %d bytes, want %d", name, info.Size(), e.size)
	case info.Mode().IsRegular():
		return e.differ
	}
	return nil
}

// firstMissing returns the first name, in lexical order, that the tree has and
// the root file system has not.
func (t *Tree) firstMissing() string {
	first := ""
	for name := range t.entries {
		if _, err := t.root.Lstat(name); err != nil && (first == "" || name < first) {
			first = name
		}
	}
	return first
}
