package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

// recordHandshake is the first byte of a TLS record with a handshake message (RFC 8446, section 5.1).
const recordHandshake = 0x16

// maxHello bounds the records of a ClientHello, in bytes.
const maxHello = 64 << 10

var errHello = errors.New("the TLS ClientHello is complete")

// readClientHello reads a ClientHello with crypto/tls, which handles all fragmentations. It returns the bytes that it
// has read, and the server name (RFC 6066, section 3), which is empty if the client sends none.
func readClientHello(from *bufio.Reader) (io.Reader, string, error) {
	var read bytes.Buffer
	name, complete := "", false
	server := tls.Server(helloConn{io.TeeReader(io.LimitReader(from, maxHello), &read)}, &tls.Config{
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			name, complete = info.ServerName, true
			return nil, errHello
		},
	})
	err := server.Handshake()
	if !complete {
		return nil, "", errors.Join(errors.New("the first bytes are not a TLS ClientHello"), err)
	}
	if name == "" {
		return nil, "", errors.New("the TLS ClientHello has no server name")
	}
	return &read, name, nil
}

// helloConn reads a ClientHello and drops what the server answers.
type helloConn struct{ io.Reader }

// Write drops an alert.
func (helloConn) Write(p []byte) (int, error) { return len(p), nil }

// Close does nothing.
func (helloConn) Close() error { return nil }

// LocalAddr returns nil.
func (helloConn) LocalAddr() net.Addr { return nil }

// RemoteAddr returns nil.
func (helloConn) RemoteAddr() net.Addr { return nil }

// SetDeadline does nothing: the deadline of the connection applies.
func (helloConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (helloConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (helloConn) SetWriteDeadline(time.Time) error { return nil }
