package codegen

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// changes are the events that mean that a tree is not what it was. Attributes
// are not among them: leases and clocks touch those.
const changes = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// watch reports with one system call whether anything below a directory has changed since
// startWatch (inotify). It is not safe for concurrent use.
type watch struct {
	fd      int
	changed bool
}

// startWatch watches all directories below dir. If the tree is verified after this call,
// no later change goes unnoticed.
func startWatch(dir string) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	w := &watch{fd: fd}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		_, err = unix.InotifyAddWatch(fd, path, changes|unix.IN_DONT_FOLLOW|unix.IN_ONLYDIR)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// quiet reports whether nothing has changed. After the first event or error it always
// returns false.
func (w *watch) quiet() bool {
	if w.changed {
		return false
	}
	var event [unix.SizeofInotifyEvent + unix.NAME_MAX + 1]byte
	_, err := unix.Read(w.fd, event[:])
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Read(w.fd, event[:])
	}
	w.changed = !errors.Is(err, unix.EAGAIN)
	return !w.changed
}

// close ends the watch; it must not be used any more.
func (w *watch) close() error { return unix.Close(w.fd) }
