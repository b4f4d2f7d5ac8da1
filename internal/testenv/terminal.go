package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// HostIsAProxy is a configuration for tests in which one process is an agent's host over HTTP and also types as a
// person. Without it, the daemon would know the test as a host, whose terminals may approve nothing.
const HostIsAProxy = "\nserve: {trustedProxies: [127.0.0.1]}\n"

// Terminal starts cmd in the foreground of a new pseudo-terminal and returns the other
// end: writes are typed input, and reads return printed output. Both end with the test.
func Terminal(t testing.TB, cmd *exec.Cmd) *os.File {
	t.Helper()
	typed, err := StartAtTerminal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		typed.Close() // which hangs up
		cmd.Process.Kill()
		cmd.Wait() // how it ended is for the test to look at before
	})
	return typed
}

// StartAtTerminal is Terminal outside a test: the caller closes what it returns
// and waits for cmd.
func StartAtTerminal(cmd *exec.Cmd) (*os.File, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	slave, err := openSlave(master)
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		master.Close()
		return nil, err
	}
	return master, nil
}

func openSlave(master *os.File) (*os.File, error) {
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, err
	}
	var index int
	var asked error
	err = raw.Control(func(fd uintptr) {
		if asked = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); asked == nil {
			index, asked = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		return nil, err
	}
	if asked != nil {
		return nil, asked
	}
	return os.OpenFile(fmt.Sprintf("/dev/pts/%d", index), os.O_RDWR|unix.O_NOCTTY, 0)
}

// AtTerminal makes cmd, which was not started, run in the foreground of a new
// pseudo-terminal that is its standard input, as a person would run it. Its other streams
// stay as they are.
func AtTerminal(t testing.TB, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	slave, err := openSlave(master)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	cmd.Stdin = slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return cmd
}
