package ctrd

import (
	"fmt"
	"net"
	"sync"

	"github.com/airlock-mcp/airlock/runner/gvisor"
)

// forkWatch learns from gVisor's kernel which processes and threads the code starts,
// and that it met its limit of them: runsc connects the kernel to a socket, over which it reports.
type forkWatch struct {
	listener *net.UnixListener
	done     chan struct{}

	mu      sync.Mutex
	conn    net.Conn        // nil until the kernel is connected
	reports *gvisor.Reports // nil until both sides have greeted
	closed  bool
}

// watchForks listens at path for the kernel's reports and passes them to watcher.
func watchForks(path string, watcher gvisor.Watcher) (*forkWatch, error) {
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("listening for a sandbox's kernel: %w", err)
	}
	w := &forkWatch{listener: listener, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		conn, err := listener.Accept()
		listener.Close() // one connection is all
		if err != nil || !w.keep(conn) {
			return
		}
		defer conn.Close()
		if gvisor.Greet(conn) != nil {
			return
		}
		if reports, err := gvisor.NewReports(conn.(*net.UnixConn), watcher); err == nil {
			w.follow(reports)
		}
	}()
	return w, nil
}

// keep remembers the connection for close. It reports false, and closes the
// connection, when that came first.
func (w *forkWatch) keep(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		conn.Close()
		return false
	}
	w.conn = conn
	return true
}

func (w *forkWatch) follow(reports *gvisor.Reports) {
	w.mu.Lock()
	w.reports = reports
	w.mu.Unlock()
	reports.Follow()
}

// flush handles what the kernel has reported before the call.
func (w *forkWatch) flush() {
	w.mu.Lock()
	reports := w.reports
	w.mu.Unlock()
	if reports != nil {
		reports.Flush()
	}
}

// close ends the watch.
func (w *forkWatch) close() {
	w.mu.Lock()
	w.closed = true
	w.listener.Close()
	if w.conn != nil {
		w.conn.Close()
	}
	w.mu.Unlock()
	<-w.done
}
