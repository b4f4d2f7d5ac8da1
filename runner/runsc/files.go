package runsc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/erofs"
	"github.com/airlock-mcp/airlock/runner"
)

// fileSystems turns directories into images that gVisor's kernel reads by itself,
// so that no process of a sandbox ever opens a file of the host. An image is
// made once and shared by all sandboxes, read-only.
type fileSystems struct {
	mu          sync.Mutex
	directories []directory // most recently used last

	checking sync.Mutex // held while a file is read
	checked  map[checkedFile]bool
	recorded map[string]string // the digests by the directory of the root file system
}

// directory is a directory that was made an image of.
type directory struct {
	id    directoryID
	image *os.File
}

// directoryID identifies a directory, to detect that a path was replaced.
type directoryID struct {
	path     string
	dev, ino uint64
	changed  time.Time
}

// maxDirectories bounds how many images of directories are kept in memory. What is
// forgotten is made again when it is needed.
const maxDirectories = 8

// maxChecked bounds how many files are remembered as checked.
const maxChecked = 64

// checkAttempts is how often a file is read whose inode changes meanwhile.
const checkAttempts = 3

// root returns the image of an unpacked root file system. It is kept in a file
// beside the directory, and lives as long as that. The file is compared with its digest
// when it is first opened, and again whenever its inode has changed. The digest is also kept
// in a file, so a digest that differs from the first one is refused: the directory's name is
// that of its contents. The caller must close the file.
func (s *fileSystems) root(image runner.Image) (*os.File, error) {
	file, digest, err := images.OpenFileSystem(image.RootFS)
	if errors.Is(err, fs.ErrNotExist) {
		err = images.MakeFileSystem(image.RootFS)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
			// Another user's image, without its file yet.
			return s.directory(image.RootFS)
		}
		if err == nil {
			file, digest, err = images.OpenFileSystem(image.RootFS)
		}
	}
	if err == nil {
		err = s.check(file, digest)
	}
	if err == nil && !s.isRecorded(image.RootFS, digest) {
		err = &images.FileSystemError{Path: file.Name()}
	}
	if err != nil {
		if file != nil {
			file.Close()
		}
		return nil, fmt.Errorf("opening the root file system of image %q: %w", image.Name, err)
	}
	return file, nil
}

// isRecorded records the first digest of a root file system, and reports whether the given one is equal to it.
func (s *fileSystems) isRecorded(rootFS, digest string) bool {
	s.checking.Lock()
	defer s.checking.Unlock()
	if s.recorded == nil {
		s.recorded = map[string]string{}
	}
	if s.recorded[rootFS] == "" {
		s.recorded[rootFS] = digest
	}
	return s.recorded[rootFS] == digest
}

// checkedFile identifies a file with its contents: every write changes the time of its inode.
type checkedFile struct {
	digest   string
	dev, ino uint64
	size     int64
	changed  unix.Timespec
}

// check compares a file with its digest, unless it did so before.
func (s *fileSystems) check(file *os.File, digest string) error {
	s.checking.Lock()
	defer s.checking.Unlock()
	// Another process that makes the same file replaces this one, which changes its inode without its contents. So a
	// change while the file is read is only an error if it goes on.
	for range checkAttempts {
		before, err := checkedOf(file, digest)
		if err != nil || s.checked[before] {
			return err
		}
		if err := images.CheckFileSystem(file, digest); err != nil {
			return err
		}
		after, err := checkedOf(file, digest)
		if err != nil {
			return err
		}
		if after != before {
			continue
		}
		if s.checked == nil || len(s.checked) >= maxChecked {
			s.checked = map[checkedFile]bool{}
		}
		s.checked[before] = true
		return nil
	}
	return &images.FileSystemError{Path: file.Name()}
}

func checkedOf(file *os.File, digest string) (checkedFile, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return checkedFile{}, err
	}
	return checkedFile{digest, stat.Dev, stat.Ino, stat.Size, stat.Ctim}, nil
}

// directory returns the image of any directory, which is kept in memory. The directory's
// contents must not change; another directory may take its place. The caller
// closes what it gets.
func (s *fileSystems) directory(dir string) (*os.File, error) {
	id, err := identify(dir)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.directories, func(f directory) bool { return f.id == id })
	if at < 0 {
		image, err := makeMemory(dir)
		if err != nil {
			return nil, err
		}
		s.directories = append(s.directories, directory{id, image})
	} else {
		used := s.directories[at]
		s.directories = append(slices.Delete(s.directories, at, at+1), used)
	}
	if len(s.directories) > maxDirectories {
		s.directories[0].image.Close() // sandboxes have duplicates of the descriptor
		s.directories = slices.Delete(s.directories, 0, 1)
	}
	return reopen(s.directories[len(s.directories)-1].image)
}

// close forgets all images.
func (s *fileSystems) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.directories {
		f.image.Close()
	}
	s.directories = nil
}

func identify(dir string) (directoryID, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return directoryID{}, err
	}
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return directoryID{}, err
	}
	return directoryID{dir, stat.Dev, stat.Ino, info.ModTime()}, nil
}

// makeMemory writes the image of a directory to sealed memory.
func makeMemory(dir string) (*os.File, error) {
	fd, err := unix.MemfdCreate("airlock-directory", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	image := os.NewFile(uintptr(fd), "image of "+dir)
	if err := erofs.Write(image, dir); err != nil {
		image.Close()
		return nil, err
	}
	if err := seal(image); err != nil {
		image.Close()
		return nil, err
	}
	return image, nil
}

// seal makes a memory file immutable, for everyone who has or gets it.
func seal(file *os.File) error {
	_, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS,
		unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return err
}

// reopen returns another descriptor of a file, for reading only.
func reopen(file *os.File) (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}
