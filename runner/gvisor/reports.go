package gvisor

import (
	"encoding/json"

	"golang.org/x/sys/unix"
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
