package daemon

import (
	"context"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// orderly is a TCP listener that resets no connection of a client when it is closed. The kernel completes connections
// before Accept returns them, and resets those that wait when their listener is closed. A client has sent its request
// by then, and a load balancer does not send it to another node. So Close first refuses new connections and then
// accepts those that wait.
type orderly struct{ *net.TCPListener }

// listenOrderly opens an address. The kernel attaches no filter to a socket of Multipath TCP, which Go opens otherwise.
func listenOrderly(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return orderly{l.(*net.TCPListener)}, nil
}

const (
	// handshakeTime is how long connections that have begun may take to complete, within one data center.
	handshakeTime = 20 * time.Millisecond
	// queueTime is how long connections that wait may take to be accepted. Later they are reset.
	queueTime = 5 * time.Second
)

// Close refuses new connections, waits until Accept has returned those that wait, and closes the listener. A client
// whose first packet was dropped meanwhile sends it again, after a second, and is refused then. http.Server.Shutdown
// must not be the first caller: it holds a lock that accepting takes.
func (l orderly) Close() error {
	if raw, err := l.SyscallConn(); err == nil && dropNew(raw.Control) == nil {
		begun := time.Now()
		for time.Since(begun) < handshakeTime || time.Since(begun) < queueTime && waiting(raw.Control) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return l.TCPListener.Close()
}

// dropNew has the kernel drop the first packet of each new connection to a listening socket.
func dropNew(control func(func(fd uintptr)) error) error {
	const flags, syn, ack = 13, 0x02, 0x10 // in the header of TCP, with which the packets of a socket begin
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: syn | ack},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
	}
	var err error
	if failed := control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	}); failed != nil {
		return failed
	}
	return os.NewSyscallError("setsockopt", err)
}

// waiting returns the number of connections to a listening socket that are complete and not accepted.
func waiting(control func(func(fd uintptr)) error) (n uint32) {
	_ = control(func(fd uintptr) { // if it is closed, nothing waits
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Unacked // of a listening socket, the length of its queue
		}
	})
	return n
}
