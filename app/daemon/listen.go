package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/system"
)

// Listener is an open address.
type Listener struct {
	net.Listener
	tls *tls.Config // nil: what arrives is HTTP without TLS
}

// serve answers with web until the listener is closed.
func (l *Listener) serve(web *http.Server) error {
	web.TLSConfig = l.tls
	if l.tls != nil {
		return web.ServeTLS(newBounded(l.Listener, maxConnections), "", "")
	}
	return web.Serve(newBounded(l.Listener, maxConnections))
}

// Listen opens the configured address. One that other machines can reach needs
// TLS, or a proxy that ends it, and the names by which it is reached.
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
		return nil, &system.SetupError{Err: fmt.Errorf("the address %q has no port", serve.Listen), Advice: "write it as 127.0.0.1:7823"}
	}
	if !server.IsLoopback(host) {
		refused := fmt.Errorf("the address %q can be reached from other machines", serve.Listen)
		switch {
		case serve.Certificate == "" && !serve.Proxy:
			return nil, &system.SetupError{Err: refused, Advice: "listen on 127.0.0.1, or set serve.certificate and serve.key, or serve.proxy: true where a proxy ends TLS"}
		case len(serve.Hosts) == 0:
			return nil, &system.SetupError{Err: refused, Advice: "list in serve.hosts the names by which it is reached: requests for any other name are refused"}
		}
	}
	var secured *tls.Config
	if serve.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(serve.Certificate, serve.Key)
		if err != nil {
			return nil, &system.SetupError{Err: fmt.Errorf("reading the certificate: %w", err), Advice: "serve.certificate and serve.key are PEM files that belong together"}
		}
		secured = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	}
	if given != nil {
		return &Listener{given, secured}, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", serve.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening on %q: %w", serve.Listen, err)
	}
	return &Listener{l, secured}, nil
}

// URL is where the listener is reached from this machine.
func (l *Listener) URL() string {
	if l.tls != nil {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}
