package upstream

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// errHungUp means that the other side closed a connection while it was idle.
var errHungUp = errors.New("the server has closed the connection")

// checkedConn looks, before each write, whether the other side has closed the
// connection. net/http then knows that nothing was sent, and sends the request
// over a new connection; otherwise a request that is written into a connection
// which a restarting server has just closed is lost, and it is not known whether
// the server saw it.
type checkedConn struct {
	net.Conn
	raw syscall.RawConn
}

// checked wraps a connection. It closes the connection if it returns an error.
func checked(conn net.Conn) (net.Conn, error) {
	access, ok := conn.(syscall.Conn)
	if !ok {
		return conn, nil
	}
	raw, err := access.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &checkedConn{conn, raw}, nil
}

// Write implements net.Conn.
func (c *checkedConn) Write(p []byte) (int, error) {
	if c.hungUp() {
		return 0, errHungUp
	}
	return c.Conn.Write(p)
}

// hungUp reports whether nothing more can come from the other side. It takes no
// byte and does not wait.
func (c *checkedConn) hungUp() bool {
	var n int
	var err error
	closed := c.raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, err = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	switch {
	case closed != nil:
		return true
	case err == nil:
		return n == 0
	}
	return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
}
