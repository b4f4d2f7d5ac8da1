package wire

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// MethodReclaim is the method with which the far side asks for the answer to a request that it
// sent before its sandbox was suspended. The id is that of the request.
const MethodReclaim = "run/reclaim"

// ErrNotQuiet is returned by Hold if something is under way on a connection.
var ErrNotQuiet = errors.New("the socket is not quiet: a message is under way")

// Held is a conversation of which nothing is read. Exactly one of Release and Detach must be called.
type Held struct {
	of    *Conversation
	moved chan struct{} // receives when something was paused or has ended
	over  chan struct{} // closed by Release and Detach
}

// pausable is a goroutine that reads or accepts. It is guarded by the conversation's mutex.
type pausable struct{ paused bool }

// Hold stops reading from all connections, of a sandbox whose processes do not run. If no message
// is under way in either direction, and the IDs of open requests are unique, it returns the
// number of open requests; otherwise everything goes on and the error is ErrNotQuiet, or that of ctx.
//
// The listener must have the methods SetDeadline and SyscallConn of *net.UnixListener.
func (c *Conversation) Hold(ctx context.Context) (*Held, int, error) {
	h := &Held{of: c, moved: make(chan struct{}, 1), over: make(chan struct{})}
	c.mu.Lock()
	listener := c.listener
	if c.holding != nil || listener == nil {
		c.mu.Unlock()
		return nil, 0, ErrNotQuiet
	}
	c.holding = h
	setDeadline(listener, past)
	for n := range c.living {
		interruptReads(n.conn)
	}
	c.mu.Unlock()
	for {
		settled, quiet, open := c.look(listener)
		if settled && quiet {
			return h, open, nil
		}
		if settled {
			h.Release()
			return nil, 0, ErrNotQuiet
		}
		select {
		case <-h.moved:
		case <-ctx.Done():
			h.Release()
			return nil, 0, ctx.Err()
		}
	}
}

// look reports whether everything is paused, and then whether no message is under way.
func (c *Conversation) look(listener net.Listener) (settled, quiet bool, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.acceptor.paused && len(c.conns) < cap(c.conns) {
		return false, false, 0
	}
	for n := range c.living {
		if !n.reader.paused {
			return false, false, 0
		}
	}
	if isReadable(listener) || len(c.open) != len(c.inFlight) {
		return true, false, 0
	}
	ids := map[string]bool{}
	for r := range c.open {
		if ids[string(r.req.ID)] {
			return true, false, 0
		}
		ids[string(r.req.ID)] = true
	}
	for n := range c.living {
		if n.received != n.framed || isReadable(n.conn) || hasUnread(n.conn) {
			return true, false, 0
		}
	}
	return true, true, len(c.open)
}

// changed tells Hold to look again.
func (h *Held) changed() {
	select {
	case h.moved <- struct{}{}:
	default:
	}
}

// Release lets everything go on.
func (h *Held) Release() { h.end(func(*connection) {}) }

// Detach ends all connections without cancelling their requests: each answer waits until a
// connection reclaims it.
func (h *Held) Detach() {
	h.end(func(n *connection) {
		delete(h.of.living, n)
		for r := range h.of.open {
			if r.conn == n {
				r.conn = nil
			}
		}
	})
}

func (h *Held) end(each func(*connection)) {
	c := h.of
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = nil
	setDeadline(c.listener, time.Time{})
	for n := range c.living {
		_ = n.conn.SetReadDeadline(time.Time{})
		each(n)
	}
	close(h.over)
}

// pausedBy waits while the conversation is held, if err came from that, and reports whether to try again.
func (c *Conversation) pausedBy(done <-chan struct{}, p *pausable, err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.mu.Lock()
	h := c.holding
	if h != nil {
		p.paused = true
		h.changed()
	}
	c.mu.Unlock()
	if h == nil {
		return true // it is over by now
	}
	again := true
	select {
	case <-h.over:
	case <-done:
		again = false
	}
	c.mu.Lock()
	p.paused = false
	c.mu.Unlock()
	return again
}

// Read reads from the connection, and waits while the conversation is held. A connection that was
// detached has ended.
func (n *connection) Read(b []byte) (int, error) {
	for {
		got, err := n.conn.Read(b)
		n.received += int64(got)
		if got > 0 || !n.of.pausedBy(n.done, &n.reader, err) {
			return got, err
		}
		if n.isDetached() {
			return 0, net.ErrClosed
		}
	}
}

func (n *connection) isDetached() bool {
	n.of.mu.Lock()
	defer n.of.mu.Unlock()
	_, living := n.of.living[n]
	return !living
}

// reclaim gives a detached request to the connection that asks for it. Others are answered with an error.
func (c *Conversation) reclaim(n *connection, req Request) {
	c.mu.Lock()
	done := answer{id: req.ID, refused: true, left: func(error) {}}
	for r := range c.open {
		if r.conn != nil || !bytes.Equal(r.req.ID, req.ID) {
			continue
		}
		r.conn = n
		if r.ready == nil {
			c.mu.Unlock()
			return
		}
		delete(c.open, r)
		done = *r.ready
	}
	c.mu.Unlock()
	n.writer.send(done)
}

// past is a deadline that interrupts what waits.
var past = time.Unix(1, 0)

func interruptReads(conn net.Conn) { _ = conn.SetReadDeadline(past) }

func setDeadline(l net.Listener, t time.Time) {
	if timed, ok := l.(interface{ SetDeadline(time.Time) error }); ok {
		_ = timed.SetDeadline(t) // of a closed listener, which accepts nothing
	}
}

// isReadable reports whether a socket has data, or a listener a connection, that was not taken.
// It is true if that cannot be determined.
func isReadable(of any) bool {
	return control(of, func(fd int) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return n != 0 || err != nil
	})
}

// hasUnread reports whether the far side has not read everything that was sent (unix(7), SIOCOUTQ). It is true if
// that cannot be determined.
func hasUnread(of any) bool {
	return control(of, func(fd int) bool {
		n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		return n != 0 || err != nil
	})
}

func control(of any, ask func(fd int) bool) bool {
	socket, ok := of.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	answer := true
	_ = raw.Control(func(fd uintptr) { answer = ask(int(fd)) })
	return answer
}
