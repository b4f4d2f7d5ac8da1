package approval

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

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
type announcement struct {
	socket  *net.UnixListener
	serving sync.WaitGroup
	once    sync.Once
}

// Announce makes this process known to WidenCheck for the state directory home, until
// the returned function is called. It is safe to call more than once.
func Announce(home string, role Role) (end func(), err error) {
	name := announcedPrefix(home) + string(role) + "-" + telemetry.NewTraceID()
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("announcing that agents are served: %w", err)
	}
	a := &announcement{socket: socket}
	a.serving.Go(a.accept)
	return func() {
		a.once.Do(func() {
			_ = a.socket.Close() // this releases the name
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

// announcedPrefix is the beginning of the names of a state directory's announcements.
func announcedPrefix(home string) string {
	sum := sha256.Sum256([]byte(home))
	return fmt.Sprintf("@airlock-%x-%d-", sum[:16], os.Geteuid())
}

// WidenCheck returns nil if this process may widen what agents can do, such as make a
// token that can approve or accept a changed tool. If a process serves agents from the
// state directory home, the rules are those for an approval: this process must be at a
// person's terminal (else ErrNoTerminal) and apart from every agent's host (else
// ErrOfHost). It does not protect against a process that does without this program and
// writes to the state directory itself.
func WidenCheck(home string) error {
	hosts, served, err := announced(home, 0)
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

// announced returns the hosts that are served from a state directory, and whether any process, except
// the one with the ID besides, serves agents from it.
func announced(home string, besides int) (hosts []int, served bool, err error) {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, false, fmt.Errorf("looking for processes that serve agents: %w", err)
	}
	prefix := []byte(announcedPrefix(home))
	for line := range bytes.Lines(table) {
		at := bytes.Index(line, prefix)
		if at < 0 {
			continue
		}
		name := strings.TrimSpace(string(line[at:]))
		pid, found := listenerOf(name)
		if !found || pid == besides {
			continue
		}
		served = true
		if role := strings.TrimPrefix(name, string(prefix)); !strings.HasPrefix(role, string(ServesHost)) {
			continue
		}
		if host, err := procfs.Host(pid); err == nil {
			hosts = append(hosts, host)
		}
	}
	return hosts, served, nil
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
