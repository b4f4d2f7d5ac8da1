package codegen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// stagingPrefix begins the names of folders that are no published tree: not
// yet, or not any more.
const stagingPrefix = ".staging-"

// Lease keeps a published tree from being pruned. It is a shared lock (flock)
// on the tree's folder itself, so it ends with Close or with the process,
// however that ends. Close it when no sandbox has the tree mounted any more.
type Lease struct {
	Path string // the folder to mount at /workspace/servers
	file *os.File
}

// Close gives the tree up. A second call does nothing.
func (l *Lease) Close() error {
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("giving up wrappers %q: %w", l.Path, err)
	}
	return nil
}

// lock opens a folder and locks it. The folder that it locked is the one at
// path: one that was moved away in between counts as not there.
func lock(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(file.Fd()), how)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %q: %w", path, err), file.Close())
	}
	locked, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	standing, err := os.Lstat(path)
	if err == nil && !os.SameFile(locked, standing) {
		err = fmt.Errorf("locking %q: it was replaced: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// isNoFolder reports whether something other than a folder stands at a path.
func isNoFolder(err error) bool {
	return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// Prune removes from dir every tree that no process holds a lease on and whose
// digest keep does not want, and whatever a crash or a damaged tree left
// behind. A nil keep wants nothing. It returns how many trees it removed, and
// may run beside Publish and Prune in any process.
func Prune(dir string, keep func(digest string) bool) (removed int, err error) {
	guard, err := lock(dir, unix.LOCK_EX)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("pruning wrappers: %w", err)
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("pruning wrappers: %w", err)
	}
	var errs []error
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
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("pruning wrappers: %w", err)
	}
	return removed, nil
}

// isTreeName reports whether a name is one that Publish gives.
func isTreeName(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// removeTree removes a tree unless someone holds a lease on it. It moves it out
// of the way first: half a tree never stands under a tree's name.
func removeTree(dir, path string) (gone bool, err error) {
	file, err := lock(path, unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case isNoFolder(err):
		return true, os.Remove(path)
	case err != nil:
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	aside, err := moveAside(dir, path)
	if err != nil {
		return false, err
	}
	return true, os.RemoveAll(aside)
}

// removeLeftover removes a staging folder, unless the tree that was moved into
// it is still in use.
func removeLeftover(path string) (err error) {
	file, err := lock(filepath.Join(path, "old"), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil
	case errors.Is(err, fs.ErrNotExist), isNoFolder(err):
		return os.RemoveAll(path)
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return os.RemoveAll(path)
}
