package cluster

import (
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"time"
)

// maxUnproved is the maximum number of connections whose peer has not proved yet that it is a node.
const maxUnproved = 128

// unproved is a listener with a limit for connections that have not proved yet that they are those of nodes. Above the
// limit, the oldest one is closed: a node proves it within milliseconds, so that others cannot keep it out by holding
// connections. It is safe for concurrent use.
type unproved struct {
	net.Listener

	mu   sync.Mutex // guards open
	open []*unprovedConn
}

func newUnproved(l net.Listener) *unproved { return &unproved{Listener: l} }

// unprovedConn is a connection of the listener.
type unprovedConn struct {
	net.Conn
	of *unproved
}

// Accept accepts a connection, which has connectTime for its handshake.
func (u *unproved) Accept() (net.Conn, error) {
	raw, err := u.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &unprovedConn{raw, u}
	time.AfterFunc(connectTime, func() { // it does nothing if the connection has proved itself
		if u.forget(c) {
			raw.Close()
		}
	})
	u.mu.Lock()
	u.open = append(u.open, c)
	var oldest *unprovedConn
	if len(u.open) > maxUnproved {
		oldest = u.open[0]
		u.open = slices.Delete(u.open, 0, 1)
	}
	u.mu.Unlock()
	if oldest != nil {
		oldest.Conn.Close() // the error is that of a connection that nobody needs
	}
	return c, nil
}

// Close closes the connection.
func (c *unprovedConn) Close() error {
	c.of.forget(c)
	return c.Conn.Close()
}

// forget ends the count of a connection. It returns false if it was not counted any more.
func (u *unproved) forget(c *unprovedConn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.open, c)
	if i >= 0 {
		u.open = slices.Delete(u.open, i, i+1)
	}
	return i >= 0
}

// config returns a configuration of TLS whose connections are not counted any more when they are verified.
func (u *unproved) config(base *tls.Config) *tls.Config {
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c, ok := hello.Conn.(*unprovedConn)
		if !ok {
			return nil, errForeignNode
		}
		one := base.Clone()
		one.GetConfigForClient = nil
		one.VerifyConnection = func(state tls.ConnectionState) error {
			err := base.VerifyConnection(state)
			if err == nil {
				u.forget(c)
			}
			return err
		}
		return one, nil
	}
	return base
}
