package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/quota"
	"go.yaml.in/yaml/v4"
)

// Serving configures the faces for hosts and the addresses of `airlock serve`.
type Serving struct {
	Face      Face
	Serve     Serve
	Auth      Auth
	Kernel    Kernel
	Approvals Approvals
}

// Serve configures the HTTP server of `airlock serve`.
type Serve struct {
	Listen  string   // address and port
	Hosts   []string // names allowed in the Host header, besides those of the loopback interface; in lower case
	Origins []string // of web pages that may send requests, besides Airlock's own
	// Certificate and Key are the absolute paths of the PEM files for TLS; both or none.
	Certificate, Key string
	Proxy            bool // a proxy in front of it terminates TLS
	// TrustedProxies are the addresses of proxies whose headers determine the address of a
	// client.
	TrustedProxies []netip.Prefix
	CallerRequests int64         // of one caller that are answered concurrently
	PublicURL      string        // at which browsers and other machines reach it; empty: by Listen and Hosts
	Console        bool          // serve the web pages for people at "/"
	DrainTime      time.Duration // for runs in progress to end at shutdown
}

func defaultServe() Serve {
	return Serve{Listen: "127.0.0.1:7823", CallerRequests: quota.For(quota.Requests).Each, Console: true,
		DrainTime: 30 * time.Second}
}

func (d *decoder) serveFields(s *Serve) []field {
	return []field{
		{key: "listen", val: hostPort{&s.Listen}},
		{key: "hosts", read: d.hostNames(&s.Hosts)},
		{key: "publicURL", read: d.secureURL(&s.PublicURL)},
		{key: "origins", read: d.origins(&s.Origins)},
		{key: "certificate", read: d.path(&s.Certificate)},
		{key: "key", read: d.path(&s.Key)},
		{key: "proxy", val: flag{&s.Proxy}},
		{key: "trustedProxies", read: d.networks(&s.TrustedProxies)},
		{key: "callerRequests", val: count[int64]{&s.CallerRequests, 16, quota.MaxRequests}},
		{key: "console", val: flag{&s.Console}},
		{key: "drainTime", val: duration{&s.DrainTime, 0, time.Hour}},
	}
}

// serve reads the section and checks that its values are consistent.
func (d *decoder) serve(s *Serve) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		if err := d.object(n, path, d.serveFields(s)); err != nil {
			return err
		}
		if (s.Certificate == "") != (s.Key == "") {
			return d.fail(n, "name both, or neither",
				"%s has a certificate without a key, or a key without a certificate", path)
		}
		if s.Proxy && s.Certificate != "" {
			return d.fail(n, "leave one of the two out", "%s says that a proxy ends TLS, and has a certificate", path)
		}
		return nil
	}
}

// hostNames reads names in the format of the Host header, without ports.
func (d *decoder) hostNames(to *[]string) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.items(n, path, func(n *yaml.Node, path string) error {
			name, err := d.text(n, path)
			if err != nil {
				return err
			}
			if name == "" || strings.ContainsAny(name, "/*@ \t") || strings.Contains(name, ":") &&
				net.ParseIP(strings.Trim(name, "[]")) == nil {
				return d.fail(n, "write it as in airlock.example.com: no port, no wildcard",
					"%s is not the name of a host: %q", path, name)
			}
			*to = append(*to, strings.ToLower(name))
			return nil
		})
	}
}

// networks reads addresses, and networks in CIDR notation (RFC 4632, section 3.1).
func (d *decoder) networks(to *[]netip.Prefix) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.items(n, path, func(n *yaml.Node, path string) error {
			text, err := d.text(n, path)
			if err != nil {
				return err
			}
			network, err := netip.ParsePrefix(text)
			if address, failed := netip.ParseAddr(text); failed == nil && address.Zone() == "" {
				network, err = netip.PrefixFrom(address, address.BitLen()), nil
			}
			switch {
			case err != nil || network.Addr().Is4In6():
				return d.fail(n, "write it as 10.0.0.7, 10.0.0.0/8 or 2001:db8::/32",
					"%s is neither an address nor a network: %q", path, text)
			case network.Bits() == 0:
				return d.fail(n, "name the addresses of the proxies alone",
					"%s is every address there is: each client could say that it is another", path)
			}
			*to = append(*to, network.Masked())
			return nil
		})
	}
}

// origins reads the origins of web pages (RFC 6454, section 6.2).
func (d *decoder) origins(to *[]string) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.items(n, path, func(n *yaml.Node, path string) error {
			origin, err := d.text(n, path)
			if err != nil {
				return err
			}
			u, err := url.Parse(origin)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
				u.Scheme+"://"+u.Host != origin {
				return d.fail(n, "write scheme, host and port alone: https://app.example.com",
					"%s is not the origin of a web page: %q", path, origin)
			}
			*to = append(*to, origin)
			return nil
		})
	}
}

// hostPort is a host and a port.
type hostPort struct{ to *string }

func (v hostPort) set(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16) // names of services are not the same on every machine
	}
	if err != nil {
		return errors.New("must be an address and a port, such as 127.0.0.1:7823")
	}
	*v.to = text
	return nil
}
