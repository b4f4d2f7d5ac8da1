package daemon

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clients is a handler that sets the addresses of clients behind trusted proxies.
type clients struct {
	proxies []netip.Prefix // if empty, the peer of a connection is the client
	next    http.Handler
}

// ServeHTTP calls next with RemoteAddr set to the address of the client.
func (c *clients) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if from, ok := c.of(r); ok {
		r = r.WithContext(r.Context())                      // a copy
		r.RemoteAddr = net.JoinHostPort(from.String(), "0") // the port of the client is unknown
	}
	c.next.ServeHTTP(w, r)
}

// of returns the client of a request from a trusted proxy: the last address of Forwarded (RFC
// 7239) or X-Forwarded-For that is not a trusted proxy. Earlier addresses are written by the
// client and cannot be trusted. ok is false if the address of the connection must be used: the
// request is not from a trusted proxy, the header is malformed, or both headers are present
// and differ. In the last case the proxy may write one header and forward the other unchanged
// from the client.
func (c *clients) of(r *http.Request) (netip.Addr, bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !c.trusted(plain(peer.Addr())) {
		return netip.Addr{}, false
	}
	older, standard := r.Header.Values("X-Forwarded-For"), r.Header.Values("Forwarded")
	switch {
	case len(older) > 0 && len(standard) > 0:
		one, first := c.last(strings.Split(strings.Join(older, ","), ","))
		other, second := c.last(forwardedFor(strings.Join(standard, ",")))
		return one, first && second && one == other
	case len(older) > 0:
		return c.last(strings.Split(strings.Join(older, ","), ","))
	case len(standard) > 0:
		return c.last(forwardedFor(strings.Join(standard, ",")))
	}
	return netip.Addr{}, false
}

// last returns the last of nodes that is not a trusted proxy, or the first if all are.
func (c *clients) last(nodes []string) (from netip.Addr, ok bool) {
	for _, node := range slices.Backward(nodes) {
		address, known := nodeAddress(strings.Trim(node, " \t"))
		if !known { // then earlier nodes are unknown, too
			return netip.Addr{}, false
		}
		if from = address; !c.trusted(address) {
			break
		}
	}
	return from, from.IsValid()
}

func (c *clients) trusted(address netip.Addr) bool {
	return slices.ContainsFunc(c.proxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// nodeAddress parses an address in the format of the headers (RFC 7239, section 6): IPv6 with
// brackets or, in X-Forwarded-For, without; a port may follow. ok is false for a name such as
// "unknown".
func nodeAddress(node string) (netip.Addr, bool) {
	if both, err := netip.ParseAddrPort(node); err == nil {
		return plain(both.Addr()), true
	}
	if inner, found := strings.CutPrefix(node, "["); found {
		if node, found = strings.CutSuffix(inner, "]"); !found {
			return netip.Addr{}, false
		}
	}
	address, err := netip.ParseAddr(node)
	return plain(address), err == nil
}

// plain removes the zone of an address, and converts an IPv4-mapped IPv6 address to IPv4.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

// forwardedFor returns the value of "for" of each element of Forwarded (RFC 7239, section 4),
// or "" for an element without it. It returns nil if the header is malformed: an unclosed
// quote of a client must not hide the element that a proxy has added.
func forwardedFor(header string) []string {
	var nodes []string
	rest := header
	for {
		node, named := "", map[string]bool{}
		for {
			rest = strings.TrimLeft(rest, " \t")
			name, value, behind, ok := parameter(rest)
			if !ok || named[name] {
				return nil
			}
			if named[name] = true; name == "for" {
				node = value
			}
			rest = strings.TrimLeft(behind, " \t")
			if !strings.HasPrefix(rest, ";") {
				break
			}
			rest = rest[1:]
		}
		nodes = append(nodes, node)
		if rest == "" {
			return nodes
		}
		if rest[0] != ',' {
			return nil
		}
		rest = rest[1:]
	}
}

// parameter parses a name, which it returns in lower case, and its value, a token or a quoted
// string (RFC 9110, section 5.6).
func parameter(text string) (name, value, rest string, ok bool) {
	end := strings.IndexFunc(text, notToken)
	if end <= 0 || text[end] != '=' {
		return "", "", "", false
	}
	name, rest = strings.ToLower(text[:end]), text[end+1:]
	if strings.HasPrefix(rest, `"`) {
		value, rest, ok = quoted(rest[1:])
		return name, value, rest, ok
	}
	if end = strings.IndexFunc(rest, notToken); end < 0 {
		end = len(rest)
	}
	return name, rest[:end], rest[end:], end > 0
}

// quoted parses a quoted string after its opening quote.
func quoted(text string) (value, rest string, ok bool) {
	var read strings.Builder
	for n := 0; n < len(text); n++ {
		switch text[n] {
		case '"':
			return read.String(), text[n+1:], true
		case '\\':
			if n++; n == len(text) {
				return "", "", false
			}
		}
		read.WriteByte(text[n])
	}
	return "", "", false
}

// notToken reports whether a character is not allowed in a token (RFC 9110, section 5.6.2).
func notToken(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
		!strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
