package daemon

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Notify sends a state such as READY=1 or STOPPING=1 to the service manager (sd_notify(3)). It
// does nothing without a service manager, and ignores errors, because they must not end the
// daemon.
func Notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if path[0] == '@' { // an abstract socket (unix(7))
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}

// NotifyReloading notifies the service manager that the daemon reloads its configuration. The
// caller must call Notify("READY=1") when it is done.
func NotifyReloading() {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) == nil {
		Notify(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000))
	}
}

// firstPassed is the first descriptor that a service manager passes (sd_listen_fds(3)).
const firstPassed = 3

// passed returns the listener that the service manager has opened for this process, or nil if
// there is no such listener.
func passed() (net.Listener, error) {
	pid, err := strconv.Atoi(os.Getenv("LISTEN_PID"))
	if err != nil || pid != os.Getpid() {
		return nil, nil
	}
	count := os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} { // children must not inherit them
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if count != "1" {
		return nil, fmt.Errorf("the service manager passes %s sockets: airlock.socket must have one", count)
	}
	file := os.NewFile(firstPassed, "socket of the service manager")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("taking over the socket of the service manager: %w", err)
	}
	return listener, nil
}
