package codegen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Modes of a published tree: the code in a sandbox can read it, and no process
// has a reason to write.
const (
	dirMode fs.FileMode = 0o755
	// parentMode is the mode of the directory that holds the trees.
	parentMode fs.FileMode = 0o711
	fileMode   fs.FileMode = 0o444
)

// Publish ensures that a complete and unchanged copy of the tree exists in directory dir,
// and returns a lease on it. It creates the directory if needed. An existing tree is
// shared. A tree that was edited or damaged is replaced; current users of the old one
// keep it until Prune.
//
// Publish is safe for concurrent use by any number of processes; it waits for them until
// ctx is done. After a crash the tree is complete or absent.
func Publish(ctx context.Context, dir string, t *Tree) (*Lease, error) {
	lease, err := t.publish(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("publishing wrappers: %w", err)
	}
	return lease, nil
}

func (t *Tree) publish(ctx context.Context, dir string) (lease *Lease, err error) {
	final := filepath.Join(dir, strings.TrimPrefix(t.Digest, "sha256:"))
	if lease, err := t.lease(final); lease != nil || err != nil {
		return lease, err
	}
	// Sandboxes' users pass through to the trees. Nobody else can list or lock them.
	if err := errors.Join(os.MkdirAll(dir, parentMode), os.Chmod(dir, parentMode)); err != nil {
		return nil, err
	}
	// One writer at a time, so that no process replaces a tree that another process
	// has just made and leased.
	writer, err := store.Acquire(ctx, filepath.Join(dir, writerLock), store.Exclusive)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, writer.Release()) }()
	if lease, err := t.lease(final); lease != nil || err != nil {
		return lease, err
	}
	if err := t.place(dir, final); err != nil {
		return nil, err
	}
	if lease, err = t.lease(final); lease == nil && err == nil {
		err = fmt.Errorf("%q is damaged again as soon as it is written", final)
	}
	return lease, err
}

// lease takes a lease on the tree at path, or returns nil when it is not there
// or is not what it should be.
func (t *Tree) lease(path string) (*Lease, error) {
	lock, err := hold(path, store.Shared)
	if lock == nil || err != nil {
		return nil, err
	}
	lease := &Lease{Path: path, tree: t, lock: lock}
	// Without a watch, for want of kernel resources, Intact reads the files.
	lease.watch, _ = startWatch(path)
	if t.verify(path) != nil {
		return nil, lease.Close()
	}
	return lease, nil
}

// place writes the tree beside final and renames it. A directory that exists at final is
// moved aside, because a run may still use it.
func (t *Tree) place(dir, final string) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	staged, err := os.MkdirTemp(dir, stagingPrefix)
	if err != nil {
		return err
	}
	undo.Add(func() error { return os.RemoveAll(staged) })
	if err := t.write(staged); err != nil {
		return err
	}
	if _, err := os.Lstat(final); err == nil {
		if _, err := moveAside(dir, final); err != nil {
			return err
		}
	}
	return store.PublishDir(staged, final)
}

// moveAside moves path, if it exists, to a new directory that Prune removes, and returns
// that directory.
func moveAside(dir, path string) (aside string, err error) {
	if aside, err = os.MkdirTemp(dir, stagingPrefix); err != nil {
		return "", err
	}
	err = os.Rename(path, filepath.Join(aside, oldTree))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", errors.Join(err, os.Remove(aside))
	}
	return aside, nil
}

// write writes all files below dir with their modes, independent of the umask.
func (t *Tree) write(dir string) error {
	made := map[string]bool{}
	for _, f := range t.Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		if directory := filepath.Dir(name); !made[directory] {
			if err := errors.Join(os.MkdirAll(directory, dirMode), os.Chmod(directory, dirMode)); err != nil {
				return err
			}
			made[directory] = true
		}
		if err := errors.Join(os.WriteFile(name, f.Data, fileMode), os.Chmod(name, fileMode)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, dirMode)
}

// verify returns an error unless dir holds exactly the tree: these files with
// these bytes and modes, no links, nothing else.
func (t *Tree) verify(dir string) error {
	wanted := make(map[string][]byte, len(t.Files))
	directories := map[string]bool{".": true}
	for _, f := range t.Files {
		wanted[f.Path] = f.Data
		directories[path.Dir(f.Path)] = true
	}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if !directories[rel] || info.Mode().Perm() != dirMode {
				return fmt.Errorf("directory %q with mode %v does not belong there", name, info.Mode())
			}
			return nil
		}
		data, known := wanted[rel]
		if !known || info.Mode() != fileMode {
			return fmt.Errorf("file %q with mode %v does not belong there", name, info.Mode())
		}
		delete(wanted, rel)
		return sameContent(name, data)
	})
	if err == nil && len(wanted) > 0 {
		err = fmt.Errorf("%d files are missing in %q", len(wanted), dir)
	}
	return err
}

func sameContent(name string, want []byte) error {
	got, err := store.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("file %q was changed", name)
	}
	return nil
}
