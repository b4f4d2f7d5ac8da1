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
	Name    string   `json:"name"`
	Context []string `json:"context_fields,omitempty"`
}

// TraceSession returns the kernel's trace configuration: exits from the system calls that
// create processes and threads, and the ends of processes and threads, with the thread ID.
// Events go to the SOCK_SEQPACKET socket at that path or, if socket is "", to a descriptor
// passed to the kernel. clone3 has no name in this configuration, only its number, 435 on
// every architecture.
func TraceSession(socket string) []byte {
	sink := map[string]any{"name": "remote"}
	if socket != "" {
		sink["config"] = map[string]string{"endpoint": socket}
	}
	points := append(olderCalls(), tracePoint{Name: "syscall/clone/exit"}, tracePoint{Name: "syscall/sysno/435/exit"},
		tracePoint{"sentry/task_exit", []string{"thread_id"}})
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

// Greet performs the handshake with a kernel that connected to the socket of TraceSession:
// each side sends its protocol version in field 1 of a protocol buffer (gVisor,
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

// Watcher receives events about the code's processes and threads. Its methods are not
// called concurrently.
type Watcher interface {
	// Refused is called at the first call that failed with EAGAIN; nothing is read after it.
	Refused()
	// Counted is called with how many more there are than when the reports began,
	// whenever that changes.
	Counted(tasks int)
	// GuestEnded is called with the wait status of the guest program when its first thread ends.
	GuestEnded(status unix.WaitStatus)
}

// Reports are what a kernel reports over its socket. Methods may be called
// concurrently.
type Reports struct {
	raw     syscall.RawConn
	watcher Watcher

	mu     sync.Mutex
	buffer []byte
	tasks  int
	ended  bool // a refusal was found, or there are no more reports
}

// NewReports reads from a connection of which each read returns one report.
func NewReports(conn syscall.Conn, watcher Watcher) (*Reports, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Reports{raw: raw, watcher: watcher, buffer: make([]byte, 16<<10)}, nil
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
		default:
			r.takeLocked(r.buffer[:n])
		}
	}
	return true
}

func (r *Reports) takeLocked(report []byte) {
	switch Read(report) {
	case Refused:
		r.ended = true
		r.watcher.Refused()
	case Began:
		r.tasks++
		r.watcher.Counted(r.tasks)
	case Ended:
		r.tasks--
		r.watcher.Counted(r.tasks)
		if status, ok := guestStatus(report); ok {
			r.watcher.GuestEnded(status)
		}
	}
}

// Event is the kind of one report.
type Event int

// The kinds of reports. A malformed report is Nothing, because the sandbox could write it.
const (
	Nothing Event = iota
	Refused       // a call that makes a process or thread failed with EAGAIN
	Began         // such a call made one
	Ended         // a process or thread ended
)

// taskExit is the type of the reports of sentry/task_exit (gVisor,
// pkg/sentry/seccheck/points/common.proto, MessageType).
const taskExit = 5

// Read parses a report: a header with its length and the message type, two bytes each,
// followed by a protocol buffer. For a system call, field 2 is the exit message, whose
// field 1 is the result and field 2 the error number.
func Read(report []byte) Event {
	kind, body, ok := parts(report)
	if !ok {
		return Nothing
	}
	if kind == taskExit {
		return Ended
	}
	exit, err := bytesField(body, 2)
	if err != nil {
		return Nothing
	}
	result, err := varintField(exit, 1)
	if err != nil {
		return Nothing
	}
	errno, err := varintField(exit, 2)
	switch {
	case err != nil:
		return Nothing
	case errno == uint64(unix.EAGAIN):
		return Refused
	case errno == 0 && int64(result) > 0:
		return Began
	}
	return Nothing
}

// parts returns the type of a report and its protocol buffer.
func parts(report []byte) (kind int, body []byte, ok bool) {
	if len(report) < 4 {
		return 0, nil, false
	}
	header := int(report[0]) | int(report[1])<<8
	if header < 4 || header > len(report) {
		return 0, nil, false
	}
	return int(report[2]) | int(report[3])<<8, report[header:], true
}

// guestThread is the first thread of the guest program, by its ID inside.
const guestThread = 1

// guestStatus returns how the guest program ended, from the report that its first thread did (gVisor,
// pkg/sentry/seccheck/points/sentry.proto, TaskExit): field 1 is the context, field 2 of that the
// ID of the thread, and field 2 the wait status of its process.
func guestStatus(report []byte) (status unix.WaitStatus, ok bool) {
	_, body, ok := parts(report)
	if !ok {
		return 0, false
	}
	context, err := bytesField(body, 1)
	if err != nil {
		return 0, false
	}
	thread, err := varintField(context, 2)
	if err != nil || thread != guestThread {
		return 0, false
	}
	value, err := varintField(body, 2)
	return unix.WaitStatus(value), err == nil
}
