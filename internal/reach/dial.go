package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Reasons for which a connection is refused.
var (
	ErrNearer = errors.New("the server must not send Airlock to an address of this machine or its private network")
	ErrLocal  = errors.New("its name resolves to this machine, which only localhost and names in /etc/hosts may do")
)

// How long connecting takes, and how often an idle connection is probed.
const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
)

// Dialer opens connections to addresses that it has checked. It must not be copied after its first use. It is safe for
// concurrent use. The zero value connects to public addresses only.
type Dialer struct {
	// Nearest is the nearest distance of hosts that a server or its metadata have named.
	Nearest Distance
	// Named are hosts that the operator has named. They may be nearer, and then the hosts that they name in turn may be
	// as near as they are.
	Named []string
	// Met records the distance of each connection; nil records nothing.
	Met *Met
	// Resolver looks names up; nil is that of this machine.
	Resolver *net.Resolver
	// Wrap replaces each connection; nil replaces none. It closes the connection if it returns an error.
	Wrap func(net.Conn) (net.Conn, error)

	named atomic.Int32 // the distance of the nearest of Named that was connected to
}

// Configured returns a dialer for hosts that the operator has named. A name other than localhost does not lead to this
// machine, unless /etc/hosts lists it.
func Configured() *Dialer { return &Dialer{Nearest: Local} }

// Limit returns the nearest distance at which a host that is not in Named may be: that of Nearest, or that of the
// nearest host in Named that was connected to so far.
func (d *Dialer) Limit() Distance { return max(d.Nearest, Distance(d.named.Load())) }

func (d *Dialer) isNamed(host string) bool {
	return slices.ContainsFunc(d.Named, func(name string) bool { return strings.EqualFold(name, host) })
}

// DialContext connects as net.Dialer does. Unix sockets are not checked.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Resolver: d.Resolver}
	if strings.HasPrefix(network, "unix") {
		return dialer.DialContext(ctx, network, address)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer.ControlContext = func(_ context.Context, _, to string, _ syscall.RawConn) error {
		ip, err := netip.ParseAddrPort(to)
		if err != nil {
			return fmt.Errorf("connecting to %q: the address cannot be checked", to)
		}
		return d.check(host, ip.Addr())
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if to, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		d.note(host, Of(to.Addr()))
	}
	if d.Wrap == nil {
		return conn, nil
	}
	return d.Wrap(conn)
}

// check returns an error if host may not have the address ip.
func (d *Dialer) check(host string, ip netip.Addr) error {
	distance := Of(ip)
	if distance == Public {
		distance = own(ip)
	}
	switch {
	case !may(host, ip):
		return ErrLocal
	case distance > d.Limit() && !d.isNamed(host):
		return ErrNearer
	}
	return nil
}

// own returns Local for an address of this machine, and Public for others.
func own(ip netip.Addr) Distance {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return Local
	}
	for _, address := range addresses {
		prefix, err := netip.ParsePrefix(address.String())
		if err == nil && prefix.Addr().WithZone("") == ip.Unmap().WithZone("") {
			return Local
		}
	}
	return Public
}

func (d *Dialer) note(host string, distance Distance) {
	if d.Met != nil {
		d.Met.Note(distance)
	}
	for was := d.named.Load(); d.isNamed(host) && was < int32(distance); was = d.named.Load() {
		d.named.CompareAndSwap(was, int32(distance))
	}
}

// Transport sends HTTP requests over connections of one Dialer, or through the proxy that the environment names
// (HTTPS_PROXY, HTTP_PROXY, NO_PROXY). Names are resolved by the proxy then, so only literal addresses are checked.
type Transport struct {
	dialer          *Dialer
	direct, proxied *http.Transport
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns a transport. change sets other fields of both transports than how they connect; nil sets none.
func NewTransport(d *Dialer, change func(*http.Transport)) *Transport {
	proxies := Configured()
	proxies.Wrap = d.Wrap
	t := &Transport{dialer: d, direct: Direct(d, change), proxied: Direct(proxies, change)}
	t.proxied.Proxy = http.ProxyFromEnvironment
	return t
}

// Direct returns a transport over connections of a Dialer that uses no proxy. change sets other fields than how it
// connects; nil sets none.
func Direct(d *Dialer, change func(*http.Transport)) *http.Transport {
	t := &http.Transport{
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if change != nil {
		change(t)
	}
	t.DialContext, t.Proxy = d.DialContext, nil
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(request); err == nil && proxy == nil {
		return t.direct.RoundTrip(request)
	}
	if err := t.checkStated(request.URL); err != nil {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, err
	}
	return t.proxied.RoundTrip(request)
}

// checkStated checks a host that is an address or a local name.
func (t *Transport) checkStated(u *url.URL) error {
	if distance, ok := Stated(u.Hostname()); ok && distance > t.dialer.Limit() && !t.dialer.isNamed(u.Hostname()) {
		return &net.OpError{Op: "dial", Net: "tcp", Err: ErrNearer}
	}
	return nil
}

// CloseIdleConnections closes the connections that are idle.
func (t *Transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}
