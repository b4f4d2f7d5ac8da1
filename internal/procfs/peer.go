package procfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer returns the process and the user at the other end of a unix socket, as the
// kernel knew them when they connected, or listened (unix(7), SO_PEERCRED).
func Peer(conn syscall.Conn) (pid, uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var credentials *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		credentials, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, 0, err
	}
	if asked != nil {
		return 0, 0, asked
	}
	return int(credentials.Pid), int(credentials.Uid), nil
}

// soPeerPIDFD is SO_PEERPIDFD of Linux 6.5 (include/uapi/asm-generic/socket.h).
const soPeerPIDFD = 77

// PeerLives reports whether the process that Peer returned still exists. If it does, its
// process ID was not reused, and information read about the process before this call is
// valid. If not, another process may have the ID or have received the connection. Before
// Linux 6.5, which does not support this check, it returns true.
func PeerLives(conn syscall.Conn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	lives := false
	if err := raw.Control(func(fd uintptr) { lives = peerLives(int(fd)) }); err != nil {
		return false
	}
	return lives
}

func peerLives(socket int) bool {
	handle, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, soPeerPIDFD)
	if err != nil {
		return errors.Is(err, unix.ENOPROTOOPT)
	}
	defer unix.Close(handle)
	return unix.PidfdSendSignal(handle, 0, nil, 0) == nil
}

// Parent returns the current parent of a process.
func Parent(pid int) (int, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	if len(fields) < 2 {
		return 0, fmt.Errorf("the state of process %d cannot be read", pid)
	}
	return strconv.Atoi(string(fields[1]))
}

// RunsThisProgram reports whether a process runs the same executable file as this one.
func RunsThisProgram(pid int) bool {
	ours, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	theirs, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	return err == nil && os.SameFile(ours, theirs)
}

// Wait waits until a process, which need not be a child of this one, has ended, or
// ctx ends (pidfd_open(2)).
func Wait(ctx context.Context, pid int) error {
	handle, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watching process %d: %w", pid, err)
	}
	defer unix.Close(handle)
	const tick = 100 // milliseconds after which ctx is looked at
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, tick)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watching process %d: %w", pid, err)
		}
		if n > 0 {
			return nil
		}
	}
	return ctx.Err()
}
