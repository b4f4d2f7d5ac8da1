package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/setup"
)

// Listener is an open address.
type Listener struct {
	net.Listener
	certificate *certificate // nil: HTTP without TLS
}

// serve serves web on at most the given number of connections until the listener is closed.
func (l *Listener) serve(web *http.Server, most int) error {
	accepted := newConnections(l.Listener, most, l.certificate != nil)
	defer accepted.wait()
	next := web.ConnState
	web.ConnState = func(conn net.Conn, state http.ConnState) {
		accepted.follow(conn, state)
		next(conn, state)
	}
	if l.certificate != nil {
		web.TLSConfig = &tls.Config{GetCertificate: l.certificate.get, MinVersion: tls.VersionTLS12}
		return web.ServeTLS(accepted, "", "")
	}
	return web.Serve(accepted)
}

// Reread loads the certificate from its files again. If it returns an error, the old
// certificate stays in force. It is safe for concurrent use.
func (l *Listener) Reread() error {
	if l.certificate == nil {
		return nil
	}
	return l.certificate.read()
}

// Listen opens the configured address. An address that other machines can reach requires TLS,
// or a proxy that terminates it, and the host names of requests.
func Listen(ctx context.Context, c *config.Config) (*Listener, error) {
	serve := c.Serve
	given, err := passed()
	if err != nil {
		return nil, err
	}
	if given != nil {
		serve.Listen = given.Addr().String()
	}
	host, _, err := net.SplitHostPort(serve.Listen)
	if err != nil {
		return nil, &setup.Error{Err: fmt.Errorf("the address %q has no port", serve.Listen),
			Advice: "write it as 127.0.0.1:7823"}
	}
	if !server.IsLoopback(host) {
		refused := fmt.Errorf("the address %q can be reached from other machines, so TLS and the allowed host names "+
			"must be configured", serve.Listen)
		switch {
		case serve.Certificate == "" && !serve.Proxy:
			return nil, &setup.Error{Err: refused,
				Advice: "listen on 127.0.0.1, or set serve.certificate and serve.key, or serve.proxy: true where a " +
					"proxy ends TLS"}
		case len(serve.Hosts) == 0:
			return nil, &setup.Error{Err: refused,
				Advice: "list in serve.hosts the names by which it is reached: requests for any other name are refused"}
		}
	}
	var secured *certificate
	if serve.Certificate != "" {
		secured = &certificate{file: serve.Certificate, key: serve.Key}
		if err := secured.read(); err != nil {
			return nil, &setup.Error{Err: err,
				Advice: "serve.certificate and serve.key are PEM files that belong together"}
		}
	}
	if given != nil {
		return &Listener{given, secured}, nil
	}
	l, err := listenOrderly(ctx, serve.Listen)
	if err != nil {
		return nil, notListening(c, err)
	}
	return &Listener{l, secured}, nil
}

// notListening returns the error for a configured address that cannot be opened.
func notListening(c *config.Config, err error) error {
	refused := fmt.Errorf("listening on %q: %w", c.Serve.Listen, err)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		if _, failed := Ask(); failed == nil { // which most likely uses the address
			return alreadyRunning()
		}
		return &setup.Error{Err: refused,
			Advice: "stop the program that listens there, or name another address: serve.listen, --listen; port 0 " +
				"takes a free one"}
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return &setup.Error{Err: refused, Advice: "name an address of this machine: serve.listen, --listen"}
	case errors.Is(err, unix.EACCES):
		return &setup.Error{Err: refused,
			Advice: "this user may not listen there: name a port from 1024 on, or let systemd open the address " +
				"(packaging/systemd/airlock.socket)"}
	}
	return &setup.Error{Err: refused,
		Advice: "name an address and a port that can be opened: serve.listen, --listen; port 0 takes a free one"}
}

// URL returns the URL of the listener for clients on this machine.
func (l *Listener) URL() string {
	if l.certificate != nil {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}
