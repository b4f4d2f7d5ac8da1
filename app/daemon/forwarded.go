package daemon

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clients tells where requests come from that trusted proxies hand on.
type clients struct {
	proxies []netip.Prefix // none: the other end of a connection is the client
	next    http.Handler
}

// ServeHTTP hands on a request whose RemoteAddr is that of its client.
func (c *clients) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if from, ok := c.of(r); ok {
		r = r.WithContext(r.Context())                      // a copy
		r.RemoteAddr = net.JoinHostPort(from.String(), "0") // which port the client has is not known
	}
	c.next.ServeHTTP(w, r)
}

// of returns the client of a request that a trusted proxy has sent: the last address of
// Forwarded (RFC 7239) or X-Forwarded-For that is not a trusted proxy's. What stands
// before that one is the client's own word. It is false where the address of the
// connection is what counts: no trusted proxy has sent the request, the header cannot be
// read, or there are both and they differ, since a proxy that writes one of them may hand
// on the other as the client has sent it.
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

// last returns the last of nodes that is not a trusted proxy, or the first where all are.
func (c *clients) last(nodes []string) (from netip.Addr, ok bool) {
	for _, node := range slices.Backward(nodes) {
		address, known := nodeAddress(strings.Trim(node, " \t"))
		if !known { // nor is what stands before it
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

// nodeAddress reads an address as the headers have it (RFC 7239, section 6): IPv6 in
// brackets or, in X-Forwarded-For, without; a port may follow. A name such as "unknown"
// is no address.
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

// plain is an address without a zone, and that of IPv4 as such.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

// forwardedFor returns the value of "for" of each element of Forwarded (RFC 7239, section
// 4), or nil where it is not written as the standard has it: text that a client left open,
// as with a quote, must not swallow what a proxy has added. An element without one
// is an empty text.
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

// parameter reads a name in lower case and its value, a token or a quoted text (RFC 9110,
// section 5.6).
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

// quoted reads a text up to the quote that ends it.
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

// notToken reports whether a character is none of a token (RFC 9110, section 5.6.2).
func notToken(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
