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

// connections keeps the number of open connections within a limit. When there are as
// many, the one that has waited longest for a request makes room for a new one, so that
// connections that do nothing do not displace others; when all are being answered, the new one
// is told to come back.
type connections struct {
	net.Listener
	most    int
	secured bool // they speak TLS: what is refused cannot be told why
	telling sync.WaitGroup
	tellers chan struct{} // has room for those who are told at one time

	mu      sync.Mutex                 // guards what follows
	open    map[net.Conn]*list.Element // nil: it is being answered
	waiting *list.List                 // of net.Conn; who has waited longest is in front
}

// How long, and how many at one time, clients are told that there is no room. To more
// it is not told.
const (
	tellTime    = time.Second
	mostTellers = 64
)

func newConnections(l net.Listener, most int, secured bool) *connections {
	return &connections{
		Listener: l, most: most, secured: secured, tellers: make(chan struct{}, mostTellers),
		open: map[net.Conn]*list.Element{}, waiting: list.New(),
	}
}

// Accept returns the next connection that there is room for.
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

// take makes room for a connection, if it can.
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
		old.Close() // its reader notices
	}
	c.open[conn] = c.waiting.PushBack(conn)
	return true
}

// busy is the answer to a connection that there is no room for.
const busy = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n" +
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
		// What goes wrong here goes wrong for who is refused.
		_ = conn.SetDeadline(time.Now().Add(tellTime))
		_, _ = io.WriteString(conn, busy)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_, _ = io.CopyN(io.Discard, conn, writePart) // what is not read would cut the answer off
	})
}

// follow is told by the server how a connection stands.
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

// wait waits for those who are being told that there is no room.
func (c *connections) wait() { c.telling.Wait() }
