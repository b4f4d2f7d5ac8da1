package codegen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

const (
	// writerLock is the file that a process locks while it changes the directory of trees.
	writerLock = ".lock"
	// stagingPrefix begins the names of directories that hold no published tree: not
	// yet, or not any more.
	stagingPrefix = ".staging-"
	// oldTree is what a tree is called in the staging directory it was moved to.
	oldTree = "old"
)

// Lease protects a published tree from Prune. It is a shared lock on the tree's directory,
// so it ends with Close or with the process. The caller must close it after the last
// sandbox that mounts the tree has ended.
type Lease struct {
	Path string // the directory to mount at /workspace/servers

	tree *Tree

	mu    sync.Mutex
	lock  *store.Lock // nil after Close
	watch *watch      // may be nil
}

// Hold returns a lease on a tree in dir that Publish has published before, perhaps in another process. name is the
// last element of its path. It is an error if the tree is gone or not what was published.
func Hold(dir, name string) (*Lease, error) {
	path := filepath.Join(dir, name)
	lock, err := hold(path, store.Shared)
	if err != nil {
		return nil, fmt.Errorf("holding wrappers: %w", err)
	}
	if lock == nil {
		return nil, errors.New("the wrappers that the run was started with were removed")
	}
	t, err := readTree(path)
	if err == nil {
		err = t.verify(path)
	}
	if err == nil && digest(t.Files) != t.Digest {
		err = errors.New("the wrappers that the run was started with were modified")
	}
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return &Lease{Path: path, tree: t, lock: lock}, nil
}

// readTree reads the published tree at path.
func readTree(path string) (*Tree, error) {
	t := &Tree{Digest: "sha256:" + filepath.Base(path)}
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := store.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(path, file)
		t.Files = append(t.Files, File{Path: filepath.ToSlash(rel), Data: data})
		return err
	})
	slices.SortFunc(t.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return t, err
}

// Pack returns the published tree at path in one piece, for PublishPacked on another machine.
func Pack(path string) ([]byte, error) {
	t, err := readTree(path)
	if err != nil {
		return nil, fmt.Errorf("packing wrappers: %w", err)
	}
	return json.Marshal(t.Files)
}

// PublishPacked is Publish for packed, the result of Pack. name is the last element of the path that was packed. It is
// the digest of the tree, and an error is returned if the content has another one.
func PublishPacked(ctx context.Context, dir, name string, packed []byte) (*Lease, error) {
	t := &Tree{Digest: "sha256:" + name}
	err := strictjson.Unmarshal(packed, &t.Files)
	if err != nil || digest(t.Files) != t.Digest {
		return nil, errors.New("publishing wrappers: the content does not have the digest in its name")
	}
	for _, file := range t.Files {
		if !filepath.IsLocal(file.Path) {
			return nil, fmt.Errorf("publishing wrappers: the path %q leaves their directory", file.Path)
		}
	}
	return Publish(ctx, dir, t)
}

// Intact reports whether the tree is still as it was published. It costs one
// system call, so it can be asked before every run; false means: Publish
// again. It sees what anyone writes, adds, removes or renames in the tree's
// directories, but not a write through a memory mapping or a hard link elsewhere;
// Publish sees those too. Where the kernel grants no watch it reads all files.
// It may be called concurrently, and is false after Close.
func (l *Lease) Intact() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lock == nil:
		return false
	case l.watch == nil:
		return l.tree.verify(l.Path) == nil
	}
	return l.watch.quiet()
}

// Close releases the tree. A second call does nothing.
func (l *Lease) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return nil
	}
	lock := l.lock
	l.lock = nil
	var err error
	if l.watch != nil {
		err = l.watch.close()
	}
	return errors.Join(err, lock.Release())
}

// hold locks the directory at path. It returns nil if the directory does not exist, or if
// another process locked or moved it first.
func hold(path string, mode store.Mode) (*store.Lock, error) {
	before, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !before.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lock, err := store.TryHoldReadable(path, mode)
	if errors.Is(err, store.ErrLocked) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The lock is on the opened directory. Check that path still refers to it.
	if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
		return nil, lock.Release()
	}
	return lock, nil
}

// Prune removes from dir every tree that no process holds a lease on and whose
// digest keep does not want, and whatever a crash or a damaged tree left
// behind. A nil keep wants nothing. It returns how many trees it removed. It
// may run beside Publish and Prune in any process and waits for them until ctx ends.
func Prune(ctx context.Context, dir string, keep func(digest string) bool) (removed int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("pruning wrappers: %w", err)
	}
	writer, err := store.Acquire(ctx, filepath.Join(dir, writerLock), store.Exclusive)
	if err != nil {
		return 0, fmt.Errorf("pruning wrappers: %w", err)
	}
	errs := []error{}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch name := entry.Name(); {
		case isTreeName(name) && (keep == nil || !keep("sha256:"+name)):
			gone, err := removeTree(dir, path)
			if gone {
				removed++
			}
			errs = append(errs, err)
		case strings.HasPrefix(name, stagingPrefix):
			errs = append(errs, removeLeftover(path))
		}
	}
	if err := errors.Join(append(errs, writer.Release())...); err != nil {
		return removed, fmt.Errorf("pruning wrappers: %w", err)
	}
	return removed, nil
}

// isTreeName reports whether a name is one that Publish gives.
func isTreeName(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// removeTree removes a tree unless a lease on it exists. It renames the tree first, so that
// a partial tree never has a tree's name.
func removeTree(dir, path string) (gone bool, err error) {
	lock, err := hold(path, store.Exclusive)
	if lock == nil || err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	aside, err := moveAside(dir, path)
	if err != nil {
		return false, err
	}
	return true, os.RemoveAll(aside)
}

// removeLeftover removes a staging directory, unless the tree that was moved into
// it is still in use.
func removeLeftover(path string) (err error) {
	old := filepath.Join(path, oldTree)
	if info, err := os.Lstat(old); err != nil || !info.IsDir() {
		return os.RemoveAll(path)
	}
	lock, err := hold(old, store.Exclusive)
	if lock == nil || err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return os.RemoveAll(path)
}
