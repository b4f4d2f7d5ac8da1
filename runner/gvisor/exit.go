package gvisor

import (
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
)

// Exit reads a guest's status as gVisor reports it: a guest that died of a signal
// shows as 128 and the signal, as in a shell, so one that exits with such a status
// looks the same.
func Exit(code int) runner.Exit {
	if code > 128 && code < 128+65 {
		return runner.Exit{Code: code, Signal: code - 128}
	}
	return runner.Exit{Code: code}
}

// ExitOf reads a guest's wait status.
func ExitOf(status unix.WaitStatus) runner.Exit {
	if status.Signaled() {
		return Exit(128 + int(status.Signal()))
	}
	return runner.Exit{Code: status.ExitStatus()}
}
