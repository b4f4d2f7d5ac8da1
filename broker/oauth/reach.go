package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// reach is how near an address is to this machine. A server says where its metadata and
// its authorization server are; it must not send Airlock to places that are nearer than
// itself, which only this machine or its network reaches.
type reach int

const (
	public   reach = iota // anywhere
	private               // the network of this machine
	loopback              // this machine
)

// reachOf is how near the nearest address of a host is.
func reachOf(ctx context.Context, host string) (reach, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return reachOfIP(ip), nil
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return public, fmt.Errorf("looking up %q: %w", host, err)
	}
	nearest := public
	for _, ip := range addresses {
		nearest = max(nearest, reachOfIP(ip))
	}
	return nearest, nil
}

// shared is the address space of carriers (RFC 6598), which is not public either.
var shared = netip.MustParsePrefix("100.64.0.0/10")

func reachOfIP(ip netip.Addr) reach {
	ip = ip.Unmap()
	switch {
	case ip.IsLoopback() || ip.IsUnspecified():
		return loopback
	case ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || shared.Contains(ip):
		return private
	}
	return public
}

// errNearer is a connection to a place that is nearer than the server.
var errNearer = errors.New("the server may not send Airlock to an address of this machine or its network")

// secure says why credentials may not go to a URL: they go over https alone, but for
// this machine's own addresses.
func secure(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return errors.New("it is no address that can be used")
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && isLocal(u.Hostname()):
		return nil
	}
	return errors.New("it is no https address")
}

func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// newTransport returns one that connects to nothing nearer than nearest. What goes
// through a proxy is the proxy's to decide.
func newTransport(nearest reach) http.RoundTripper {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err == nil && reachOfIP(to.Addr()) > nearest {
			return errNearer
		}
		return nil
	}
	make := func() *http.Transport {
		return &http.Transport{
			ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, ResponseHeaderTimeout: httpTimeout,
		}
	}
	direct, proxied := make(), make()
	direct.DialContext, proxied.Proxy = dialer.DialContext, http.ProxyFromEnvironment
	return &transport{direct, proxied}
}

// transport sends over a proxy where the environment names one.
type transport struct{ direct, proxied *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(request); err == nil && proxy == nil {
		return t.direct.RoundTrip(request)
	}
	return t.proxied.RoundTrip(request)
}

// CloseIdleConnections closes the connections that are kept.
func (t *transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}
