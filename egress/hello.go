package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// The parts of TLS records (RFC 8446, section 5.1).
const (
	recordHandshake  = 0x16 // content type
	recordHeader     = 5    // bytes
	maxRecord        = recordHeader + 1<<14 + 2048
	typeClientHello  = 1 // of a handshake message
	extensionECH     = 0xfe0d
	helloPrefix      = recordHeader + 6 // bytes of a record that identify a ClientHello
	minContent       = 20               // change_cipher_spec is the first content type
	maxContent       = 24               // heartbeat is the last one
	maxHello         = 64 << 10         // bytes of the records of a ClientHello
	legacyVersionTLS = 3                // both bytes of the version in a ClientHello
)

var errHello = errors.New("the TLS ClientHello is complete")

// hello reads a ClientHello and returns its records. It returns an error if the server name (RFC 6066, section 3) is
// not that of the host. With an encrypted ClientHello, the name that counts cannot be read.
func (s *splice) hello(from *bufio.Reader) ([]byte, error) {
	var read bytes.Buffer
	var info *tls.ClientHelloInfo
	// crypto/tls handles all fragmentations.
	server := tls.Server(helloConn{io.TeeReader(&record{from: from, most: maxHello}, &read)}, &tls.Config{
		GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
			info = i
			return nil, errHello
		},
	})
	err := server.Handshake()
	switch {
	case info == nil:
		return nil, errors.Join(errors.New("the first bytes are not a TLS ClientHello"), err)
	case slices.Contains(info.Extensions, extensionECH):
		return nil, errors.New("an encrypted ClientHello (ECH) is refused: its server name cannot be read")
	case info.ServerName == "":
		return nil, errors.New("the TLS ClientHello has no server name")
	case !strings.EqualFold(strings.TrimSuffix(info.ServerName, "."), s.host.Name):
		return nil, fmt.Errorf("the server name of TLS is %.253q, not %q", info.ServerName, s.host.Name)
	}
	return read.Bytes(), nil
}

// records sends the first ClientHello and the records that follow. A client may send another ClientHello in clear, if
// the server asks for it (RFC 8446, section 4.1.4), also behind early data; its server name is checked, too.
func (s *splice) records(hello []byte, from *bufio.Reader) error {
	_, err := s.send(hello)
	buf := make([]byte, maxRecord)
	for err == nil {
		head, peeked := from.Peek(recordHeader)
		if len(head) == 0 && errors.Is(peeked, io.EOF) {
			return nil
		}
		if peeked != nil {
			return peeked
		}
		size := recordHeader + int(binary.BigEndian.Uint16(head[3:]))
		if head[0] < minContent || head[0] > maxContent || size > maxRecord {
			return errors.New("what follows the ClientHello is not TLS")
		}
		if head[0] == recordHandshake && size < helloPrefix {
			return errors.New("a TLS handshake record is too short to be read")
		}
		if again, err := isHello(from, head[0]); err != nil {
			return err
		} else if again {
			if hello, err = s.hello(from); err != nil {
				return err
			}
			if _, err = s.send(hello); err != nil {
				return err
			}
			continue
		}
		if _, err := io.ReadFull(from, buf[:size]); err != nil {
			return err
		}
		_, err = s.send(buf[:size])
	}
	return err
}

// isHello reports whether the next record begins with a ClientHello in clear. An encrypted record of TLS 1.2 looks like
// one with a probability of 2^-32.
func isHello(from *bufio.Reader, content byte) (bool, error) {
	if content != recordHandshake {
		return false, nil
	}
	head, err := from.Peek(helloPrefix)
	if err != nil {
		return false, err
	}
	message := head[recordHeader:]
	return message[0] == typeClientHello && message[1] == 0 && message[4] == legacyVersionTLS &&
		message[5] <= legacyVersionTLS+1, nil
}

// record reads TLS records. A Read returns bytes of one record only, so that nothing behind the last one is read.
type record struct {
	from *bufio.Reader
	left int // bytes of the current record
	most int // bytes that may still be read
}

// Read implements io.Reader.
func (r *record) Read(p []byte) (int, error) {
	if r.most == 0 {
		return 0, errors.New("the TLS ClientHello is too large")
	}
	if r.left == 0 {
		head, err := r.from.Peek(recordHeader)
		if err != nil {
			return 0, err
		}
		r.left = recordHeader + int(binary.BigEndian.Uint16(head[3:]))
	}
	n, err := r.from.Read(p[:min(len(p), r.left, r.most)])
	r.left, r.most = r.left-n, r.most-n
	return n, err
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
