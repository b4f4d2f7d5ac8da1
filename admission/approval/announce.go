package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/strictjson"
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
// It also holds a lock of the state directory, which other namespaces cannot hide.
type announcement struct {
	lock    *os.File
	socket  *net.UnixListener
	hosts   func() ([]int, error)
	serving sync.WaitGroup
	once    sync.Once
}

// Announce makes this process known to WidenCheck for the state directory home, until
// the returned function is called. It is safe to call more than once. hosts returns the processes of further
// hosts that this process serves; nil means that there are none.
func Announce(home string, role Role, hosts func() ([]int, error)) (end func(), err error) {
	prefix, lock, err := stateDirectory(home)
	if err != nil {
		return nil, fmt.Errorf("announcing that agents are served: %w", err)
	}
	if hosts == nil {
		hosts = func() ([]int, error) { return nil, nil }
	}
	return announce(prefix, lock, role, hosts)
}

// HostsInCluster returns the processes of the hosts that other processes of this machine serve with the key of a
// cluster. A node asks about a call of a host of another node, and has its own state directory.
func HostsInCluster(key string) ([]int, error) {
	hosts, _, _, err := listening(clusterPrefix(key), os.Getpid())
	return hosts, err
}

// AnnounceCluster makes this process known to WidenCheckCluster for the cluster with a key, like Announce. The hosts of
// other processes that serve from the state directory home count as its own.
func AnnounceCluster(key, home string, hosts func() ([]int, error)) (end func(), err error) {
	_, lock, err := stateDirectory(home)
	if err != nil {
		return nil, fmt.Errorf("announcing that agents are served: %w", err)
	}
	return announce(clusterPrefix(key), lock, Serves, func() ([]int, error) {
		others, _, err := announced(home, -1)
		own, ownErr := hosts()
		return append(others, own...), errors.Join(err, ownErr)
	})
}

// clusterPrefix returns the beginning of the names of the announcements for a cluster.
func clusterPrefix(key string) string {
	return "@airlock-cluster-" + canon.Digest([]byte(key))[:39] + "-"
}

func announce(prefix string, lock *os.File, role Role, hosts func() ([]int, error)) (end func(), err error) {
	name := prefix + string(role) + "-" + telemetry.NewTraceID()
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("announcing that agents are served: %w", err), lock.Close())
	}
	_ = unix.FcntlFlock(lock.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}) // not on every file system
	a := &announcement{lock: lock, socket: socket, hosts: hosts}
	a.serving.Go(a.accept)
	return func() {
		a.once.Do(func() {
			_ = a.socket.Close() // this releases the name
			_ = a.lock.Close()   // and this the lock
			a.serving.Wait()
		})
	}, nil
}

// answerTime bounds how long a process that serves agents may take to list its hosts. On a busy machine, looking
// through all processes takes seconds.
const answerTime = 30 * time.Second

// maxHosts bounds the list of hosts in bytes.
const maxHosts = 64 << 10

// accept answers every connection with the hosts, as a list in JSON. Clients learn from the kernel who listens.
func (a *announcement) accept() {
	for {
		conn, err := a.socket.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
		case isOwn(conn):
			_ = conn.Close()
		default:
			hosts, err := a.hosts()
			// A client that does not get the list refuses what it wanted to do.
			_ = conn.SetDeadline(time.Now().Add(answerTime))
			if err == nil {
				_ = json.NewEncoder(conn).Encode(hosts)
			}
			_ = conn.Close()
		}
	}
}

// isOwn reports whether this process has made a connection. listenerOf does not read its answer, and to make it would
// ask the announcements of the cluster, this one included, again.
func isOwn(conn *net.UnixConn) bool {
	pid, _, err := procfs.Peer(conn)
	return err == nil && pid == os.Getpid()
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
func WidenCheck(home string) error { return widenCheck(announced(home, -1)) }

// WidenCheckCluster is WidenCheck for the processes of this machine that serve agents with the key of a cluster. A
// command can use the database of the cluster with any state directory.
func WidenCheckCluster(key string) error {
	hosts, served, _, err := listening(clusterPrefix(key), -1)
	return widenCheck(hosts, served, err)
}

func widenCheck(hosts []int, served bool, err error) error {
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

// ApartCheckCluster returns ErrOfHost if this process may have been started by a host that another process of this
// machine serves with the key of a cluster. Unlike WidenCheckCluster, it permits a service without a terminal.
func ApartCheckCluster(key string) error {
	hosts, _, _, err := listening(clusterPrefix(key), os.Getpid())
	if err != nil {
		return err
	}
	line, err := ancestry(os.Getpid())
	if err != nil {
		return fmt.Errorf("%w: this process cannot be inspected: %w", ErrOfHost, err)
	}
	for _, host := range hosts {
		of, err := guard{host: host}.line()
		if err == nil {
			err = of.apart(line)
		}
		if err != nil && !errors.Is(err, errHostEnded) {
			return err
		}
	}
	return nil
}

// IsServed reports whether another process than this one serves agents from the state directory home.
func IsServed(home string) (bool, error) {
	_, served, err := announced(home, os.Getpid())
	if served {
		err = nil // which hosts it serves does not matter
	}
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
	for range 3 { // the kernel may leave a socket out of its table while others are closed
		hosts, served, seen, err := listening(prefix, besides)
		if err != nil || seen || !isLocked(directory) {
			return hosts, served, err
		}
	}
	return nil, true, fmt.Errorf("%w: the processes that serve agents cannot be seen from here", ErrOfHost)
}

// listens are the flags of a listening socket in /proc/net/unix (__SO_ACCEPTCON). The connections that it has accepted
// have the same name and other flags.
const listens = "00010000"

// listening returns the hosts of the announcements with a prefix, and whether there are any, except those of the
// process with the ID besides. seen reports whether there are any at all.
func listening(prefix string, besides int) (hosts []int, served, seen bool, err error) {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, false, false, fmt.Errorf("looking for processes that serve agents: %w", err)
	}
	for line := range bytes.Lines(table) {
		fields := bytes.Fields(line) // see unix(7) and proc_net(5); a name has no spaces
		if len(fields) != 8 || string(fields[3]) != listens || !bytes.HasPrefix(fields[7], []byte(prefix)) {
			continue
		}
		name := string(fields[7])
		pid, more, found, err := listenerOf(name)
		seen = seen || found
		if !found || pid == besides {
			continue
		}
		served = true
		if pid <= 0 {
			return nil, true, seen, fmt.Errorf("%w: a process that serves agents cannot be seen from here", ErrOfHost)
		}
		if err != nil {
			return nil, true, seen, fmt.Errorf("%w: process %d does not list the hosts that it serves: %w", ErrOfHost,
				pid, err)
		}
		hosts = append(hosts, more...)
		if role := strings.TrimPrefix(name, prefix); !strings.HasPrefix(role, string(ServesHost)) {
			continue
		}
		if host, err := procfs.Host(pid); err == nil {
			hosts = append(hosts, host)
		}
	}
	return hosts, served, seen, nil
}

// isLocked reports whether another process has locked an open directory. Unlike /proc/locks, the kernel's answer does
// not depend on the namespaces of the processes.
func isLocked(directory *os.File) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(directory.Fd(), unix.F_OFD_GETLK, &lock)
	return err == nil && lock.Type != unix.F_UNLCK
}

// listenerOf returns the process that listens at an announcement, and the hosts that it serves. Processes of other
// users are ignored.
func listenerOf(name string) (pid int, hosts []int, found bool, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return 0, nil, false, nil // it has ended
	}
	defer conn.Close()
	pid, uid, err := procfs.Peer(conn)
	if err != nil || uid != os.Geteuid() {
		return 0, nil, false, nil
	}
	if pid == os.Getpid() {
		return pid, nil, true, nil
	}
	if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return pid, nil, true, err
	}
	list, err := io.ReadAll(io.LimitReader(conn, maxHosts))
	if err == nil {
		err = strictjson.Unmarshal(list, &hosts)
	}
	return pid, hosts, true, err
}
