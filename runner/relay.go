package runner

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// relay is the listener of a sandbox. It stays the same when the sandbox is suspended and gets
// another socket.
type relay struct {
	mu      sync.Mutex
	now     *net.UnixListener // nil while no listener is set
	changed chan struct{}     // closed and replaced when now or closed has changed
	closed  bool
}

func newRelay() *relay { return &relay{changed: make(chan struct{})} }

// replace gives the relay another listener, or none if it is nil.
func (l *relay) replace(with *net.UnixListener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed && with != nil {
		with.Close()
	}
	l.now = with
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *relay) look() (now *net.UnixListener, changed <-chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.changed, l.closed
}

// Accept waits for the next connection, across suspensions.
func (l *relay) Accept() (net.Conn, error) {
	for {
		now, changed, closed := l.look()
		if closed {
			return nil, net.ErrClosed
		}
		if now == nil {
			<-changed
			continue
		}
		conn, err := now.Accept()
		if replaced, _, closed := l.look(); err != nil && replaced != now && !closed {
			continue
		}
		return conn, err
	}
}

// Close closes the current listener. Accept returns net.ErrClosed from now on.
func (l *relay) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	close(l.changed)
	l.changed = make(chan struct{})
	if l.now == nil {
		return nil
	}
	return closeListener(l.now)
}

// Addr returns the address of the current listener, or an empty one.
func (l *relay) Addr() net.Addr {
	if now, _, _ := l.look(); now != nil {
		return now.Addr()
	}
	return &net.UnixAddr{Net: "unix"}
}

// SetDeadline sets the deadline of the current listener.
func (l *relay) SetDeadline(t time.Time) error {
	now, _, _ := l.look()
	if now == nil {
		return net.ErrClosed
	}
	return now.SetDeadline(t)
}

// SyscallConn gives access to the socket of the current listener.
func (l *relay) SyscallConn() (syscall.RawConn, error) {
	now, _, _ := l.look()
	if now == nil {
		return nil, net.ErrClosed
	}
	return now.SyscallConn()
}
