package daemon

import (
	"container/list"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections is a listener that limits the number of open connections. If the limit is
// reached, it closes the connection that has been idle the longest in favour of the new one.
// If all connections have a request in progress, it answers the new one with 503.
type connections struct {
	net.Listener
	most    int
	secured bool // connections use TLS: refused ones are closed without an answer
	telling sync.WaitGroup
	tellers chan struct{} // semaphore for the concurrent answers to refused connections

	mu      sync.Mutex                 // guards what follows
	open    map[net.Conn]*list.Element // nil: a request is in progress
	waiting *list.List                 // of net.Conn; the front has been idle the longest
	fresh   map[net.Conn]struct{}      // of those in waiting: no request has been read yet
}

// Limits on the answers to refused connections: the timeout of one, and the number of
// concurrent ones. Beyond that number, connections are closed without an answer.
const (
	tellTime    = time.Second
	mostTellers = 64
)

func newConnections(l net.Listener, most int, secured bool) *connections {
	return &connections{
		Listener: l, most: most, secured: secured, tellers: make(chan struct{}, mostTellers),
		open: map[net.Conn]*list.Element{}, waiting: list.New(), fresh: map[net.Conn]struct{}{},
	}
}

// Accept returns the next connection within the limit.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.take(conn) {
			return conn, nil
		}
		c.refuse(conn)
	}
}

// take adds a connection, and reports whether the limit allows it.
func (c *connections) take(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.most {
		longest := c.waiting.Front()
		if longest == nil {
			return false
		}
		old := c.waiting.Remove(longest).(net.Conn)
		delete(c.open, old)
		delete(c.fresh, old)
		old.Close() // which ends its reader
	}
	c.open[conn] = c.waiting.PushBack(conn)
	c.fresh[conn] = struct{}{}
	return true
}

// busy is the answer to a connection beyond the limit.
const busy = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: " +
	"application/json\r\n\r\n" +
	`{"error":{"code":"busy","message":"too many connections are open: send it again"}}` + "\n"

// refuse ends a connection that was not taken.
func (c *connections) refuse(conn net.Conn) {
	if c.secured {
		conn.Close()
		return
	}
	select {
	case c.tellers <- struct{}{}:
	default:
		conn.Close()
		return
	}
	c.telling.Go(func() {
		defer func() { <-c.tellers }()
		defer conn.Close()
		// Errors are ignored: they only affect the refused client.
		_ = conn.SetDeadline(time.Now().Add(tellTime))
		_, _ = io.WriteString(conn, busy)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		// closing with unread data would reset the connection and discard the answer
		_, _ = io.CopyN(io.Discard, conn, writePart)
	})
}

// follow is the ConnState hook of the server.
func (c *connections) follow(conn net.Conn, state http.ConnState) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	place, ok := c.open[conn]
	if !ok {
		return
	}
	if state != http.StateNew {
		delete(c.fresh, conn)
	}
	switch state {
	case http.StateActive:
		if place != nil {
			c.waiting.Remove(place)
			c.open[conn] = nil
		}
	case http.StateIdle:
		if place == nil {
			c.open[conn] = c.waiting.PushBack(conn)
		}
	case http.StateClosed, http.StateHijacked:
		if place != nil {
			c.waiting.Remove(place)
		}
		delete(c.open, conn)
	}
}

// requestTime is how long the first request of a connection may take to arrive when no more connections are accepted.
const requestTime = time.Second

// wait waits until the answers to refused connections are written, and for the first requests of connections that were
// accepted last: their clients have mostly sent them.
func (c *connections) wait() {
	c.telling.Wait()
	for begun := time.Now(); time.Since(begun) < requestTime && c.countFresh() > 0; {
		time.Sleep(time.Millisecond)
	}
}

func (c *connections) countFresh() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.fresh)
}
