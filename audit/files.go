package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openFiles are the files of a log that its store holds open.
type openFiles struct {
	directory *os.File
	lock      *os.File
	head      *os.File
	kept      *os.File
	tree      hashFile
	position  *os.File
	active    *os.File // the segment that is written

	inodes map[*os.File]inode // of those that inPlace has looked at
}

// inode is which file it is. While it is open, no other has the same.
type inode struct{ device, number uint64 }

// open opens all files but the active segment, creating those that are missing.
func (f *openFiles) open(p places) error {
	var err error
	if f.directory, err = os.OpenFile(p.dir, unix.O_DIRECTORY|os.O_RDONLY, 0); err != nil {
		return err
	}
	for _, file := range []struct {
		to   **os.File
		path string
	}{
		{&f.lock, filepath.Join(p.dir, lockFile)}, {&f.head, filepath.Join(p.dir, headFile)},
		{&f.kept, filepath.Join(p.dir, historyFile)},
	} {
		if *file.to, err = openPlain(file.path, os.O_CREATE|os.O_RDWR); err != nil {
			return err
		}
	}
	f.tree, err = makeHashes(filepath.Join(p.dir, treeFile))
	return err
}

const lockFile = "lock"

// inPlace returns an error if the open files are no longer at their paths. Records written to
// a renamed, removed or replaced log would never be read.
func (f *openFiles) inPlace(p places) error {
	if !f.isAt(f.directory, unix.AT_FDCWD, p.dir, 0) {
		return &replacedError{p.dir}
	}
	directory := int(f.directory.Fd())
	for _, file := range []*os.File{f.lock, f.head, f.kept, f.active} {
		if file != nil && !f.isAt(file, directory, filepath.Base(file.Name()), unix.AT_SYMLINK_NOFOLLOW) {
			return &replacedError{file.Name()}
		}
	}
	if f.position != nil && !f.isAt(f.position, unix.AT_FDCWD, p.position, unix.AT_SYMLINK_NOFOLLOW) {
		return &replacedError{p.position}
	}
	return nil
}

// isAt reports whether the open file is the one with that name.
func (f *openFiles) isAt(open *os.File, directory int, name string, flags int) bool {
	var is, named unix.Stat_t
	if unix.Fstatat(directory, name, &named, flags) != nil {
		return false
	}
	there := inode{named.Dev, named.Ino}
	if f.inodes[open] == there {
		return true
	}
	if unix.Fstat(int(open.Fd()), &is) != nil || there != (inode{is.Dev, is.Ino}) {
		return false
	}
	if f.inodes == nil {
		f.inodes = map[*os.File]inode{}
	}
	f.inodes[open] = there
	return true
}

// replacedError reports that a file of a log was replaced after it was opened.
type replacedError struct{ path string }

// Error is one sentence.
func (e *replacedError) Error() string {
	return fmt.Sprintf("%q was renamed, removed or replaced while Airlock had it open: nothing can be recorded", e.path)
}

// Hint returns the command to type.
func (e *replacedError) Hint() string {
	return "put it back as it was, or end this Airlock, and look at what `airlock audit verify` says"
}

func (f *openFiles) close() error {
	var errs []error
	for _, file := range []*os.File{f.directory, f.head, f.kept, f.tree.file, f.position, f.active, f.lock} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}

// writersName is the directory beside the keys with a file for each process.
func writersName(positionName string) string {
	return strings.Replace(positionName, "position", "writers", 1)
}
