package runsc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/erofs"
	"github.com/airlock-mcp/airlock/runner"
)

// fileSystems turns folders into images that gVisor's kernel reads by itself,
// so that no process of a sandbox ever opens a file of the host. An image is
// made once and shared by all sandboxes; nobody can write to it.
type fileSystems struct {
	mu      sync.Mutex
	folders []folder // most recently used last
}

// folder is a folder that was made an image of.
type folder struct {
	id    folderID
	image *os.File
}

// folderID tells whether a path still leads to the same folder.
type folderID struct {
	path     string
	dev, ino uint64
	changed  time.Time
}

// maxFolders bounds how many images of folders are kept in memory. What is
// forgotten is made again when it is needed.
const maxFolders = 8

// root returns the image of an unpacked root file system. It is kept in a file
// beside the folder, and lives as long as that. The caller closes what it gets.
func (s *fileSystems) root(image runner.Image) (*os.File, error) {
	path := image.RootFS + ".erofs"
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = s.makeFile(image.RootFS, path)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
			// Someone else's image, without its file yet.
			return s.folder(image.RootFS)
		}
		if err == nil {
			file, err = os.Open(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the root file system of image %q: %w", image.Name, err)
	}
	return file, nil
}

// makeFile writes the image of a folder to path, which appears complete or not at all.
func (s *fileSystems) makeFile(dir, path string) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".erofs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Close(), removed(temp.Name())) }()
	if err := erofs.Write(temp, dir); err != nil {
		return err
	}
	if err := temp.Chmod(0o444); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// folder returns the image of any folder, which is kept in memory. The folder's
// contents must not change; another folder may take its place. The caller
// closes what it gets.
func (s *fileSystems) folder(dir string) (*os.File, error) {
	id, err := identify(dir)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.folders, func(f folder) bool { return f.id == id })
	if at < 0 {
		image, err := makeMemory(dir)
		if err != nil {
			return nil, err
		}
		s.folders = append(s.folders, folder{id, image})
	} else {
		used := s.folders[at]
		s.folders = append(slices.Delete(s.folders, at, at+1), used)
	}
	if len(s.folders) > maxFolders {
		s.folders[0].image.Close() // sandboxes have descriptors of their own
		s.folders = slices.Delete(s.folders, 0, 1)
	}
	return reopen(s.folders[len(s.folders)-1].image)
}

// close forgets all images.
func (s *fileSystems) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.folders {
		f.image.Close()
	}
	s.folders = nil
}

func identify(dir string) (folderID, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return folderID{}, err
	}
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return folderID{}, err
	}
	return folderID{dir, stat.Dev, stat.Ino, info.ModTime()}, nil
}

// makeMemory writes the image of a folder to memory that nobody can change any more.
func makeMemory(dir string) (*os.File, error) {
	fd, err := unix.MemfdCreate("airlock-folder", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
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
	_, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return err
}

// reopen returns another descriptor of a file, for reading only.
func reopen(file *os.File) (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}
