package runsc

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner/gvisor"
)

// forkWatch learns from gVisor's kernel which processes and threads the code starts,
// and that it met its limit of them. The limit itself (RLIMIT_NPROC) only makes clone(2) fail with
// EAGAIN inside, which is not seen outside; so the kernel reports the results
// of these calls over a socket (gVisor's runtime monitoring, "trace session").
type forkWatch struct {
	conn    net.Conn
	reports *gvisor.Reports
	done    chan struct{}
}

func watchConfig(state string) string { return filepath.Join(state, "watch.json") }

// watchForks returns a watch, and the end of its socket to pass to the kernel. watcher
// receives the reports.
func watchForks(watcher gvisor.Watcher) (*forkWatch, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to a sandbox's kernel: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "reports"), os.NewFile(uintptr(pair[1]), "reports")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("connecting to a sandbox's kernel: %w", err)
	}
	reports, err := gvisor.NewReports(conn.(*net.UnixConn), watcher)
	if err != nil {
		conn.Close()
		theirs.Close()
		return nil, nil, fmt.Errorf("connecting to a sandbox's kernel: %w", err)
	}
	w := &forkWatch{conn: conn, reports: reports, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		reports.Follow()
	}()
	return w, theirs, nil
}

// close ends the watch.
func (w *forkWatch) close() {
	w.conn.Close()
	<-w.done
}
