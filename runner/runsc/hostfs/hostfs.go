// Package hostfs serves one directory of the host to one sandbox, with gVisor's own file server (lisafs). The server
// runs in Airlock's process, in threads that Landlock confines to the directory, if the kernel has Landlock.
//
// It opens files relative to the directory, one name after another, and never follows a symbolic link: gVisor's kernel
// resolves links inside of the sandbox. Sockets, FIFOs and devices cannot be opened.
package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/lisafs"
	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/pkg/unet"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/fsgofer"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// prepare opens what all servers of the process share, and drops the messages that gVisor logs to stderr.
var prepare = sync.OnceValue(func() error {
	log.SetTarget(log.GoogleEmitter{Writer: &log.Writer{Next: io.Discard}})
	syscall.ForkLock.RLock() // until the descriptor is marked, which gVisor does not do
	defer syscall.ForkLock.RUnlock()
	if err := fsgofer.OpenProcSelfFD(ownFDs); err != nil {
		return err
	}
	entries, err := os.ReadDir(ownFDs)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		target, linkErr := os.Readlink(filepath.Join(ownFDs, entry.Name()))
		if err == nil && linkErr == nil && target == fmt.Sprintf("/proc/%d/fd", os.Getpid()) {
			unix.CloseOnExec(fd)
		}
	}
	return nil
})

// ownFDs is the directory with the descriptors of this process.
const ownFDs = "/proc/self/fd"

// Server serves one directory.
type Server struct {
	server *lisafs.Server
	socket *unet.Socket
	limits *confinement
	once   sync.Once
}

// Start returns a server and the end of its connection that belongs to gVisor's kernel. The path must be absolute and
// have no symbolic link; the caller ensures that no sandbox can put one there. If writable is false, nothing below the
// directory can be changed through the server. seen is called for each file that the sandbox opens or changes, or tries
// to; nil reports nothing.
func Start(directory string, writable bool, seen func(path string, write bool)) (*Server, *os.File, error) {
	root, err := open(directory)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the mounted directory %q: %w", directory, err)
	}
	defer unix.Close(root)
	if err := prepare(); err != nil {
		return nil, nil, fmt.Errorf("serving the mounted directory %q: %w", directory, err)
	}
	limits, err := confine(root, writable)
	if err != nil {
		return nil, nil, fmt.Errorf("confining the threads for the mounted directory %q: %w", directory, err)
	}
	var undo cleanup.Stack
	defer undo.Run() // its functions return no error
	undo.Add(func() error { limits.close(); return nil })
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to a sandbox's kernel: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "lisafs")
	socket, err := unet.NewSocket(pair[0])
	if err != nil {
		return nil, nil, errors.Join(err, unix.Close(pair[0]), theirs.Close())
	}
	files := fsgofer.NewConnectionImpl(&fsgofer.Config{HostUDS: config.HostUDSNone,
		HostFifo: config.HostFifoNone, RUID: os.Getuid(), EUID: os.Geteuid(), RGID: os.Getgid(), EGID: os.Getegid()})
	s := &Server{server: lisafs.NewServer(), socket: socket, limits: limits}
	answered := handlers()
	if seen != nil {
		(&observer{directory: directory, seen: seen, paths: map[lisafs.FDID]string{}}).observe(answered)
	}
	limits.wrap(answered)
	s.server.SetHandlers(answered)
	conn, err := s.server.CreateConnection(socket, directory, fsgofer.ConnectionOpts(!writable), files)
	if err != nil {
		socket.Close()
		return nil, nil, errors.Join(fmt.Errorf("serving the mounted directory %q: %w", directory, err), theirs.Close())
	}
	s.server.StartConnection(conn)
	undo.Keep()
	return s, theirs, nil
}

// Close ends the server and waits for it. The sandbox must be dead. Calling it twice is fine.
func (s *Server) Close() {
	s.once.Do(func() {
		_ = s.socket.Shutdown() // the connection closes the socket
		s.server.Wait()
		s.server.Destroy()
		s.limits.close()
	})
}

// open opens a directory without following a symbolic link.
func open(directory string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, directory, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ELOOP) {
		return -1, errors.New("its path has a symbolic link")
	}
	return fd, err
}
