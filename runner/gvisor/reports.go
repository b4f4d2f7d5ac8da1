package gvisor

import (
	"encoding/json"
	"fmt"
	"io"

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

// AwaitRefusal reads reports, of which each read returns one, until one is
// Refused (true), or until there are no more (false).
func AwaitRefusal(reports io.Reader) bool {
	buffer := make([]byte, 16<<10)
	for {
		n, err := reports.Read(buffer)
		if err != nil || n == 0 {
			return false
		}
		if Refused(buffer[:n]) {
			return true
		}
	}
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
