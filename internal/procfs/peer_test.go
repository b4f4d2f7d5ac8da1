package procfs_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/procfs"
)

// socketVariable names the socket that the test binary connects to.
const socketVariable = "AIRLOCK_TEST_PEER_SOCKET"

// TestMain lets the test binary run as a program that passes its connection to a child and exits.
func TestMain(m *testing.M) {
	path := os.Getenv(socketVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := handOn(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// handOn connects, passes the connection to a child process, and returns when its standard
// input ends.
func handOn(path string) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	file, err := conn.(*net.UnixConn).File()
	if err != nil {
		return err
	}
	holder := exec.Command("cat") // until the test ends it
	holder.Stdin, holder.Stdout = file, file
	if err := holder.Start(); err != nil {
		return err
	}
	_, _ = os.Stdin.Read(make([]byte, 1)) // the end of the test ends it, too
	return nil
}

// After the process that connected has ended, PeerLives returns false, although another process
// still holds the connection.
func TestAPeerThatHasEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), socketVariable+"="+path)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // which ends the process that holds the other end
	if pid, uid, err := procfs.Peer(conn); err != nil || pid != command.Process.Pid || uid != os.Geteuid() {
		t.Errorf("got process %d of user %d, %v, want %d of %d", pid, uid, err, command.Process.Pid, os.Geteuid())
	}
	if !procfs.PeerLives(conn) {
		t.Error("got that a process that waits has ended")
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	if procfs.PeerLives(conn) && kernelTells(t, conn) {
		t.Error("got that a process lives that has ended")
	}
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Errorf("the connection ended with the process that made it: %v", err)
	}
}

// kernelTells reports whether the kernel knows SO_PEERPIDFD (Linux 6.5).
func kernelTells(t *testing.T, conn *net.UnixConn) bool {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var known error
	if err := raw.Control(
		func(fd uintptr) { _, known = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, 77) }); err != nil {
		t.Fatal(err)
	}
	return !errors.Is(known, unix.ENOPROTOOPT)
}
