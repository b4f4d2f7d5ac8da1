package daemon

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Notify tells the service manager how the daemon stands (sd_notify(3)): READY=1,
// STOPPING=1. Without a service manager it does nothing; what cannot be told is no
// reason to end.
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

// NotifyReloading tells that the configuration is read again; Notify("READY=1") ends it.
func NotifyReloading() {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) == nil {
		Notify(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000))
	}
}

// firstPassed is the first descriptor that a service manager passes (sd_listen_fds(3)).
const firstPassed = 3

// passed returns the listener that the service manager has opened for this process;
// nil where there is none.
func passed() (net.Listener, error) {
	pid, err := strconv.Atoi(os.Getenv("LISTEN_PID"))
	if err != nil || pid != os.Getpid() {
		return nil, nil
	}
	count := os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} { // they are for no child
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if count != "1" {
		return nil, fmt.Errorf("the service manager passes %s sockets: airlock.socket has one", count)
	}
	file := os.NewFile(firstPassed, "socket of the service manager")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("taking over the socket of the service manager: %w", err)
	}
	return listener, nil
}
