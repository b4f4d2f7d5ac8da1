package approval

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Role describes how a process serves agents.
type Role string

// The roles.
const (
	// ServesHost is the role of a process that was started by an agent's host: its parent is the
	// host.
	ServesHost Role = "host"
	// Serves is the role of a process that serves hosts over HTTP or a socket.
	Serves Role = "serve"
)

// announcement is the listening end of an abstract Unix socket. Unlike a file, its name
// cannot be removed by another process, and the kernel reports who listens there.
//
// It also holds a lock of the state directory, which is visible in other network namespaces.
type announcement struct {
	lock    *os.File
	socket  *net.UnixListener
	serving sync.WaitGroup
	once    sync.Once
}

// Announce makes this process known to WidenCheck for the state directory home, until
// the returned function is called. It is safe to call more than once.
func Announce(home string, role Role) (end func(), err error) {
	prefix, lock, err := stateDirectory(home)
	if err != nil {
		return nil, fmt.Errorf("announcing that agents are served: %w", err)
	}
	name := prefix + string(role) + "-" + telemetry.NewTraceID()
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("announcing that agents are served: %w", err), lock.Close())
	}
	_ = unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) // fails only if another program locks the directory
	a := &announcement{lock: lock, socket: socket}
	a.serving.Go(a.accept)
	return func() {
		a.once.Do(func() {
			_ = a.socket.Close() // this releases the name
			_ = a.lock.Close()   // and this the lock
			a.serving.Wait()
		})
	}, nil
}

// accept closes every connection. Clients only need the kernel's information about the listener.
func (a *announcement) accept() {
	for {
		conn, err := a.socket.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
		default:
			_ = conn.Close() // nothing was written
		}
	}
}

// stateDirectory opens the state directory home and returns it with the beginning of the names of its announcements.
// The names depend on the directory, not on its path or the user: a process of a host can use another path, or a user
// namespace, for the same directory.
func stateDirectory(home string) (prefix string, directory *os.File, err error) {
	directory, err = os.Open(home)
	if err != nil {
		return "", nil, err
	}
	var found unix.Stat_t
	if err := unix.Fstat(int(directory.Fd()), &found); err != nil {
		return "", nil, errors.Join(fmt.Errorf("looking at %q: %w", home, err), directory.Close())
	}
	return fmt.Sprintf("@airlock-%x-%x-", found.Dev, found.Ino), directory, nil
}

// WidenCheck returns nil if this process may widen what agents can do, such as make a
// token that can approve or accept a changed tool. If a process serves agents from the
// state directory home, the rules are those for an approval: this process must be at a
// person's terminal (else ErrNoTerminal) and apart from every agent's host (else
// ErrOfHost). It does not protect against a process that does without this program and
// writes to the state directory itself.
func WidenCheck(home string) error {
	hosts, served, err := announced(home, -1)
	if err != nil || !served {
		return err
	}
	if err := (guard{}).check(os.Getpid()); err != nil {
		return err
	}
	for _, host := range hosts {
		err := guard{host: host}.check(os.Getpid())
		if err != nil && !errors.Is(err, errHostEnded) {
			return err
		}
	}
	return nil
}

// IsServed reports whether another process than this one serves agents from the state directory home.
func IsServed(home string) (bool, error) {
	_, served, err := announced(home, os.Getpid())
	return served, err
}

// announced returns the hosts that are served from a state directory, and whether any process, except the one with the
// ID besides, serves agents from it. -1 excepts none: the kernel reports 0 for a process in another container.
func announced(home string, besides int) (hosts []int, served bool, err error) {
	prefix, directory, err := stateDirectory(home)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("looking for processes that serve agents: %w", err)
	}
	defer directory.Close()
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, false, fmt.Errorf("looking for processes that serve agents: %w", err)
	}
	seen := false
	for line := range bytes.Lines(table) {
		at := bytes.Index(line, []byte(prefix))
		if at < 0 {
			continue
		}
		name := strings.TrimSpace(string(line[at:]))
		pid, found := listenerOf(name)
		seen = seen || found
		if !found || pid == besides {
			continue
		}
		served = true
		if pid <= 0 {
			return nil, true, fmt.Errorf("%w: a process that serves agents cannot be seen from here", ErrOfHost)
		}
		if role := strings.TrimPrefix(name, prefix); !strings.HasPrefix(role, string(ServesHost)) {
			continue
		}
		if host, err := procfs.Host(pid); err == nil {
			hosts = append(hosts, host)
		}
	}
	if !seen && !served { // perhaps from another network namespace: which hosts are served is unknown
		served, err = isLocked(directory)
	}
	return hosts, served, err
}

// isLocked reports whether a process has locked an open directory (proc_locks(5)). The device is not compared, because
// some file systems report another one there.
func isLocked(directory *os.File) (bool, error) {
	info, err := directory.Stat()
	if err != nil {
		return false, fmt.Errorf("looking for processes that serve agents: %w", err)
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return false, fmt.Errorf("looking for processes that serve agents: %w", err)
	}
	inode := fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
	for line := range strings.Lines(string(locks)) {
		if strings.Contains(line, " FLOCK ") && strings.Contains(line, inode) {
			return true, nil
		}
	}
	return false, nil
}

// listenerOf returns the process that listens at an announcement. Processes of other users are
// ignored.
func listenerOf(name string) (pid int, found bool) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return 0, false // it has ended
	}
	defer conn.Close()
	pid, uid, err := procfs.Peer(conn)
	return pid, err == nil && uid == os.Geteuid()
}
