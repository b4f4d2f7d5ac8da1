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
	conn net.Conn
	done chan struct{}
}

func watchConfig(state string) string { return filepath.Join(state, "watch.json") }

// watchForks returns a watch and the end of its socket that is the kernel's. hit
// is called at most once.
func watchForks(hit func()) (*forkWatch, *os.File, error) {
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
	w := &forkWatch{conn: conn, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.serve(hit)
	}()
	return w, theirs, nil
}

// close ends the watch.
func (w *forkWatch) close() {
	w.conn.Close()
	<-w.done
}

// tracePoint names a system call whose end is reported.
type tracePoint struct {
	Name string `json:"name"`
}

// traceSession is the kernel's configuration of what to report. clone3 has no
// name of its own there, only its number, which is 435 on every architecture.
func traceSession() []byte {
	points := append(olderCalls(), tracePoint{Name: "syscall/clone/exit"}, tracePoint{Name: "syscall/sysno/435/exit"})
	data, err := json.Marshal(map[string]any{"trace_session": map[string]any{
		"name":   "Default", // the only session that may exist
		"points": points,
		"sinks":  []tracePoint{{Name: "remote"}}, // to the descriptor it is given
	}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return data
}

// serve reads reports until the sandbox ends or has met its limit.
func (w *forkWatch) serve(hit func()) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := w.conn.Read(buffer)
		if err != nil || n == 0 {
			return
		}
		if refused(buffer[:n]) {
			hit()
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
