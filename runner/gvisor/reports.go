package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
)

// tracePoint names a system call whose end is reported.
type tracePoint struct {
	Name string `json:"name"`
}

// TraceSession is the kernel's configuration of what to report: the ends of the
// calls that make processes. They go to the socket (SOCK_SEQPACKET) of that
// path, or, where it is "", to a descriptor that the kernel is given. clone3 has
// no name of its own there, only its number, which is 435 on every architecture.
func TraceSession(socket string) []byte {
	sink := map[string]any{"name": "remote"}
	if socket != "" {
		sink["config"] = map[string]string{"endpoint": socket}
	}
	points := append(olderCalls(), tracePoint{Name: "syscall/clone/exit"}, tracePoint{Name: "syscall/sysno/435/exit"})
	data, err := json.Marshal(map[string]any{"trace_session": map[string]any{
		"name":   "Default", // the only session that may exist
		"points": points,
		"sinks":  []any{sink},
	}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return data
}

// Greet answers a kernel that has connected to the socket of TraceSession: each
// side says in a protocol buffer, field 1, which version it speaks (gVisor,
// pkg/sentry/seccheck/sinks/remote).
func Greet(conn io.ReadWriter) error {
	const field, version = 1, 1
	buffer := make([]byte, 10<<10)
	n, err := conn.Read(buffer)
	if err != nil {
		return err
	}
	theirs, err := varintField(buffer[:n], field)
	if err != nil {
		return err
	}
	if theirs != version {
		return fmt.Errorf("the sandbox's kernel reports in version %d, not %d", theirs, version)
	}
	_, err = conn.Write(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), version))
	return err
}

// Reports are what a kernel reports over its socket. Methods may be called
// concurrently.
type Reports struct {
	raw     syscall.RawConn
	refused func()

	mu     sync.Mutex
	buffer []byte
	ended  bool // a refusal was found, or there are no more reports
}

// NewReports reads from a connection of which each read returns one report, and
// calls refused at the first one that is Refused.
func NewReports(conn syscall.Conn, refused func()) (*Reports, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Reports{raw: raw, refused: refused, buffer: make([]byte, 16<<10)}, nil
}

// Follow reads until a refusal, or until there are no more reports.
func (r *Reports) Follow() {
	// An error means that the connection is closed: there are no more reports.
	_ = r.raw.Read(func(fd uintptr) bool { return r.read(fd) })
}

// Flush reads what the kernel has written before the call, which it does before a
// system call returns to the code, and returns without waiting for more.
func (r *Reports) Flush() {
	_ = r.raw.Control(func(fd uintptr) { r.read(fd) })
}

// read reads all reports that are there. It returns false when more may come.
func (r *Reports) read(fd uintptr) (ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.ended {
		n, err := unix.Read(int(fd), r.buffer)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return false
		case err != nil || n == 0:
			r.ended = true
		case Refused(r.buffer[:n]):
			r.ended = true
			r.refused()
		}
	}
	return true
}

// Refused reports whether a report is of a call that failed with EAGAIN. A
// report is a header, whose first two bytes are its length, and a protocol
// buffer, in which field 2 is how the call ended and field 2 of that the error
// number. Rubbish is not a refusal: the sandbox could write it.
func Refused(report []byte) bool {
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
