package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// link is how this node and others connect to each other: with TLS, in which both sides have a certificate. Each
// process makes a key and a certificate at its start. The hash of its public key, the pin, is in its row of the
// database, and a node accepts exactly the pins of the nodes that have a lease. A nil link connects to no node.
type link struct {
	listener    net.Listener
	address     string // at which other nodes reach this one
	certificate tls.Certificate
	pin         string
	transport   *http.Transport
}

// connectTime is how long connecting to a node may take.
const connectTime = 3 * time.Second

// The limits of connections between nodes. A node that does not answer a ping has died or cannot be reached. The buffer
// of an answer is small, so that a reader that is slow holds back the node that writes.
const (
	pingAfter, pingTime = 5 * time.Second, 5 * time.Second
	streamBuffer        = 64 << 10
)

func connectionLimits() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime, MaxReceiveBufferPerStream: streamBuffer}
}

// openLink opens the address and makes the certificate.
func openLink(ctx context.Context, n *Node, address string) (*link, error) {
	certificate, pin, err := newCertificate()
	if err != nil {
		return nil, fmt.Errorf("making the certificate of this node: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &SetupError{fmt.Sprintf("listening for other nodes on %q: %v", address, err),
			"name an address of this machine and a free port: cluster.advertise"}
	}
	l := &link{listener: listener, certificate: certificate, pin: pin, address: advertised(address, listener)}
	dialer := reach.Configured()
	l.transport = reach.Direct(dialer, func(t *http.Transport) {
		t.DisableCompression = true // answers pass unchanged
		t.HTTP2 = connectionLimits()
		t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return l.connect(ctx, n, dialer, address)
		}
	})
	return l, nil
}

// advertised returns an address with the port of a listener, which the system has chosen if the port is 0.
func advertised(address string, l net.Listener) string {
	host, _, _ := net.SplitHostPort(address) // a listener was opened with it
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port)
}

// newCertificate returns a certificate with its pin. Only the pin is checked, so nothing in it matters but the key.
func newCertificate() (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(10, 0, 0)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}, pinOf(leaf), nil
}

// pinOf returns the SHA-256 hash of the public key of a certificate.
func pinOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// reached returns the address and the pin of this node.
func (l *link) reached() (address, pin string) {
	if l == nil {
		return "", ""
	}
	return l.address, l.pin
}

func (l *link) close() {
	if l != nil {
		l.listener.Close() // it may be closed already, so the error is ignored
		l.transport.CloseIdleConnections()
	}
}

var errForeignNode = errors.New("the certificate is not that of a node of this cluster that has a lease")

// config returns the configuration of TLS for connections to peers that verify accepts by their pin.
func (l *link) config(verify func(pin string) bool) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{l.certificate},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		InsecureSkipVerify: true, // without an authority: VerifyConnection checks the pin
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !verify(pinOf(state.PeerCertificates[0])) {
				return errForeignNode
			}
			return nil
		},
	}
}

// errNotConnected is returned for a request that was not sent.
var errNotConnected = errors.New("connecting to the node")

// connect connects to the node whose pin is the host of an address, so that a connection of the transport is used for
// no other process.
func (l *link) connect(ctx context.Context, n *Node, dialer *reach.Dialer, address string) (net.Conn, error) {
	pin, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	to, known := n.members.pinned(pin)
	if !known {
		return nil, fmt.Errorf("%w: %w", errNotConnected, errForeignNode)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	raw, err := dialer.DialContext(ctx, "tcp", to.address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotConnected, err)
	}
	conn := tls.Client(raw, l.config(func(found string) bool { return found == pin }))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("%w: %w", errNotConnected, err)
	}
	return conn, nil
}
