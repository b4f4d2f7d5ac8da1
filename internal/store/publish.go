package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WriteFile replaces the file at path by one with the given content and mode.
// After a crash either the old or the new content is there, never a part. The
// directory must exist.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	return Write(path, mode, func(file *os.File) error {
		_, err := file.Write(content)
		return err
	})
}

// Write is WriteFile for content that is written piece by piece.
func Write(path string, mode fs.FileMode, write func(*os.File) error) error {
	draft, err := newDraft(path, mode, write)
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	if err := errors.Join(draft.Close(), os.Rename(draft.Name(), path)); err != nil {
		return errors.Join(fmt.Errorf("writing %q: %w", path, err), os.Remove(draft.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// CreateFile creates a file atomically. If the file exists, it returns fs.ErrExist.
// The directory must exist.
func CreateFile(path string, content []byte, mode fs.FileMode) error {
	return Create(path, mode, func(file *os.File) error {
		_, err := file.Write(content)
		return err
	})
}

// Create is CreateFile for content that is written piece by piece.
func Create(path string, mode fs.FileMode, write func(*os.File) error) error {
	draft, err := create(path, nil, mode, write)
	if err != nil {
		return err
	}
	return errors.Join(draft.Close(), syncDir(filepath.Dir(path)))
}

// CreateHeld is CreateFile for a file whose exclusive lock shows that the process that created it
// is alive, see IsHeld. The file is locked before it appears.
func CreateHeld(path string, content []byte, mode fs.FileMode) (*Lock, error) {
	draft, err := create(path, content, mode, func(file *os.File) error {
		return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	})
	if err != nil {
		return nil, err
	}
	return &Lock{file: draft}, nil
}

// create makes a finished file at path and returns it, open.
func create(path string, content []byte, mode fs.FileMode, prepare func(*os.File) error) (*os.File, error) {
	write := func(file *os.File) error {
		_, err := file.Write(content)
		return errors.Join(err, prepare(file))
	}
	file, err := createUnnamed(path, mode, write)
	if errors.Is(err, errNoUnnamed) {
		file, err = createNamed(path, mode, write)
	}
	if err != nil {
		return nil, fmt.Errorf("creating %q: %w", path, err)
	}
	return file, nil
}

// createUnnamed links a file that has no name before (open(2), O_TMPFILE), so that a
// process which is killed leaves nothing behind. A link, unlike a rename, never replaces
// a file that another process made meanwhile.
func createUnnamed(path string, mode fs.FileMode, write func(*os.File) error) (*os.File, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL):
		return nil, errNoUnnamed
	case err != nil:
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	err = errors.Join(write(file), file.Chmod(mode), file.Sync())
	if err == nil {
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path,
			unix.AT_SYMLINK_FOLLOW)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// errNoUnnamed is returned if the file system does not support unnamed files.
var errNoUnnamed = errors.New("no unnamed files")

// createNamed is createUnnamed with a temporary file, which stays if the process is killed.
func createNamed(path string, mode fs.FileMode, write func(*os.File) error) (*os.File, error) {
	draft, err := newDraft(path, mode, write)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Link(draft.Name(), path), os.Remove(draft.Name())); err != nil {
		return nil, errors.Join(err, draft.Close())
	}
	return draft, nil
}

// Secret returns the content of the file at path, which only its owner may read. If it is missing,
// Secret creates it with the result of fresh, in a directory of mode 0700. Processes that do so
// concurrently all get the content of one of them.
func Secret(path string, fresh func() ([]byte, error)) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createSecret(path, fresh); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err = os.Stat(path)
	}
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%q may be read by others (mode %04o): chmod 600 it", path, mode)
	}
	return ReadFile(path)
}

func createSecret(path string, fresh func() ([]byte, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	content, err := fresh()
	if err != nil {
		return err
	}
	return CreateFile(path, content, 0o600)
}

// newDraft writes a temporary file beside path, durably, and returns it open. On an error it
// removes the file.
func newDraft(path string, mode fs.FileMode, write func(*os.File) error) (*os.File, error) {
	draft, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(write(draft), draft.Chmod(mode), draft.Sync()); err != nil {
		return nil, errors.Join(err, draft.Close(), os.Remove(draft.Name()))
	}
	return draft, nil
}

// PublishDir moves the finished directory staged to final, on the same file system, after syncing
// it to disk. If final exists, it is kept and staged is removed: directories of the same name must
// have the same content.
func PublishDir(staged, final string) error {
	if err := SyncFileSystem(staged); err != nil {
		return err
	}
	err := os.Rename(staged, final)
	if err == nil {
		return syncDir(filepath.Dir(final))
	}
	if _, statErr := os.Stat(final); statErr != nil {
		return fmt.Errorf("publishing directory %q: %w", final, err)
	}
	return os.RemoveAll(staged)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing directory %q: %w", path, err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("syncing directory %q: %w", path, err)
	}
	return nil
}

// SyncFileSystem writes everything of path's file system to disk: for a directory
// of thousands of files that is far quicker than one fsync for each.
func SyncFileSystem(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing the file system of %q: %w", path, err)
	}
	if err := errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close()); err != nil {
		return fmt.Errorf("syncing the file system of %q: %w", path, err)
	}
	return nil
}
