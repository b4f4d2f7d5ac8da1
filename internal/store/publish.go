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
	temp, err := writeTemp(path, content, mode)
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(fmt.Errorf("writing %q: %w", path, err), os.Remove(temp))
	}
	return syncDir(filepath.Dir(path))
}

// writeTemp writes a file beside path, durably, and returns its name. On an
// error nothing is left.
func writeTemp(path string, content []byte, mode fs.FileMode) (string, error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return "", err
	}
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return "", errors.Join(err, os.Remove(temp.Name()))
	}
	return temp.Name(), nil
}

// PublishDir moves the finished directory staged to final, on the same file
// system, after everything in it is on disk. Where final exists already, it is
// kept and staged is removed: final's name is expected to tell its content.
func PublishDir(staged, final string) error {
	if err := syncFileSystem(staged); err != nil {
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

// syncFileSystem writes everything of path's file system to disk: for a directory
// of thousands of files that is far quicker than one fsync for each.
func syncFileSystem(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing the file system of %q: %w", path, err)
	}
	if err := errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close()); err != nil {
		return fmt.Errorf("syncing the file system of %q: %w", path, err)
	}
	return nil
}
