package gvisor

import (
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
)

// Exit reads a guest's status as gVisor's programs tell it: a guest that died of a signal
// shows as 128 and the signal, as in a shell. guest says how it really ended, where the
// kernel has reported that: one that exits with such a status did not die of a signal.
func Exit(code int, guest func() (status unix.WaitStatus, ok bool)) runner.Exit {
	if code <= 128 || code >= 128+65 {
		return runner.Exit{Code: code}
	}
	if status, ok := guest(); ok && status.Exited() && status.ExitStatus() == code {
		return runner.Exit{Code: code}
	}
	return runner.Exit{Code: code, Signal: code - 128}
}

// ExitOf reads a guest's wait status.
func ExitOf(status unix.WaitStatus) runner.Exit {
	if status.Signaled() {
		return runner.Exit{Code: 128 + int(status.Signal()), Signal: int(status.Signal())}
	}
	return runner.Exit{Code: status.ExitStatus()}
}
