package store

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotRegular is returned for a named pipe, a device or a socket in place of a file.
var ErrNotRegular = errors.New("it is not a regular file")

// Open opens a file for reading. Unlike os.Open it does not wait at a named pipe, and opens regular
// files only. It is for files whose names Airlock chooses or reads from a configuration; a file that
// a person names at the command line may be a pipe. Symbolic links are followed.
func Open(path string) (*os.File, error) {
	return open(path, os.O_RDONLY, 0)
}

func open(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
	if errors.Is(err, unix.ENXIO) { // a socket, or a device without a driver
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "read", Path: path, Err: unix.EISDIR}
	} else if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile is os.ReadFile for the files of Open.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}
