package runner

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// socketName is the broker's socket in the directory that the sandbox sees.
const socketName = "broker.sock"

// home is the directory of one sandbox:
//
//	DIR/open/run/broker.sock   "open" is closed to everyone but the sandbox's
//	                           own host user; "run" is what the sandbox sees
//	DIR/state/                 the driver's own files
type home struct {
	dir string
}

func (h home) socketDir() string { return filepath.Join(h.dir, "open", "run") }
func (h home) state() string     { return filepath.Join(h.dir, "state") }
func (h home) remove() error     { return os.RemoveAll(h.dir) }

// newHome makes the directories. On error the result can still be removed.
func newHome(dir string) (home, error) {
	h := home{dir: dir}
	for _, step := range []struct {
		path string
		mode os.FileMode
	}{
		{h.dir, 0o711},
		{filepath.Dir(h.socketDir()), 0o700},
		{h.socketDir(), 0o755},
		{h.state(), 0o700},
	} {
		if err := os.Mkdir(step.path, step.mode); err != nil {
			return h, err
		}
		// Again, because the umask may have taken bits away.
		if err := os.Chmod(step.path, step.mode); err != nil {
			return h, err
		}
	}
	// The mounts of a sandbox are compared with what the kernel reports, which has no symbolic links.
	real, err := filepath.EvalSymlinks(h.dir)
	if err != nil {
		return h, err
	}
	return home{dir: real}, nil
}

// listen opens the sandbox's socket. Everyone who reaches it may connect; who
// reaches it is decided by the directory above.
func (h home) listen() (*net.UnixListener, error) {
	path := filepath.Join(h.socketDir(), socketName)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("opening the broker's socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}
