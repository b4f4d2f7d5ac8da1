package gvisor

import (
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
)

// Exit converts a guest's exit code as gVisor's programs report it: 128 plus the signal
// number for a guest that died of a signal, as in a shell. guest returns the wait status
// from the kernel, if reported; it distinguishes a signal from an exit with such a code.
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
