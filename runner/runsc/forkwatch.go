package runsc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// forkWatch learns from gVisor's kernel that the code inside met its limit of
// processes. The limit itself (RLIMIT_NPROC) only makes clone(2) fail with
// EAGAIN inside, which no one outside sees; so the kernel reports the results
// of these calls over a socket (gVisor's runtime monitoring, "trace session").
type forkWatch struct {
	listener *net.UnixListener
	hit      func()
	done     chan struct{}
}

func watchConfig(state string) string { return filepath.Join(state, "watch.json") }
func watchSocket(state string) string { return filepath.Join(state, "w") }

// watchForks opens the socket and writes the configuration that makes runsc
// connect to it. hit is called at most once.
func watchForks(state string, hit func()) (*forkWatch, error) {
	if err := os.WriteFile(watchConfig(state), traceSession(watchSocket(state)), 0o600); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: watchSocket(state), Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("opening the socket for the sandbox's kernel: %w", err)
	}
	w := &forkWatch{listener: listener, hit: hit, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.serve()
	}()
	return w, nil
}

// close ends the watch. The connection ends with the sandbox, which must be dead.
func (w *forkWatch) close() {
	w.listener.Close()
	<-w.done
}

// tracePoint names a system call whose end is reported.
type tracePoint struct {
	Name string `json:"name"`
}

// traceSession is runsc's configuration of what to report and where. clone3 has
// no name of its own there, only its number, which is 435 on every architecture.
func traceSession(endpoint string) []byte {
	points := append(olderCalls(), tracePoint{Name: "syscall/clone/exit"}, tracePoint{Name: "syscall/sysno/435/exit"})
	data, err := json.Marshal(map[string]any{"trace_session": map[string]any{
		"name":   "Default", // the only session that may exist
		"points": points,
		"sinks":  []map[string]any{{"name": "remote", "config": map[string]string{"endpoint": endpoint}}},
	}})
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return data
}

// serve takes the one connection, greets it and reads reports until it ends.
func (w *forkWatch) serve() {
	conn, err := w.listener.AcceptUnix()
	// There is only one kernel, and it has come.
	w.listener.Close()
	if err != nil {
		return
	}
	defer conn.Close()
	buffer := make([]byte, 16<<10)
	if _, err := conn.Read(buffer); err != nil {
		return
	}
	// The greeting is a protocol buffer: field 1, the version, is 1.
	if _, err := conn.Write([]byte{0x08, 1}); err != nil {
		return
	}
	for {
		n, err := conn.Read(buffer)
		if err != nil || n == 0 {
			return
		}
		if refused(buffer[:n]) {
			w.hit()
			return
		}
	}
}

// refused reports whether a report is of a call that failed with EAGAIN. A
// report is a header, whose first two bytes are its length, and a protocol
// buffer, in which field 2 is how the call ended and field 2 of that the error
// number. Rubbish is not a refusal: the sandbox could write it.
func refused(report []byte) bool {
	if len(report) < 2 {
		return false
	}
	header := int(report[0]) | int(report[1])<<8
	if header < 2 || header > len(report) {
		return false
	}
	exit, err := bytesField(report[header:], 2)
	if err != nil {
		return false
	}
	errno, err := varintField(exit, 2)
	return err == nil && errno == uint64(unix.EAGAIN)
}

var errMalformed = errors.New("malformed protocol buffer")
