// Package reach opens the connections of Airlock to other machines. It checks each address that a name resolves to at
// the moment of connecting, so that what is checked is what is connected to: a name can resolve to something else a
// moment later (DNS rebinding). No other package dials; a test in test/house checks that.
package reach

import (
	"bufio"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
)

// Distance is how far away an address is. Nearer addresses are greater.
type Distance int

// The distances. The zero value reaches no private service.
const (
	Public  Distance = iota // the internet
	Private                 // a network that the internet does not reach
	Local                   // this machine and its links, which is also where clouds answer with credentials
)

// The prefixes that are not public and that package netip does not know (IANA, Special-Purpose Address Registries).
var (
	privatePrefixes = prefixes(
		"100.64.0.0/10",  // shared by the customers of a carrier, RFC 6598
		"198.18.0.0/15",  // benchmarks, RFC 2544
		"192.0.0.0/24",   // protocol assignments, RFC 6890
		"240.0.0.0/4",    // reserved
		"2001::/32",      // Teredo, whose addresses lead to an IPv4 address behind a relay, RFC 4380
		"fec0::/10",      // site-local, RFC 3879
		"64:ff9b:1::/48", // translated to IPv4 by a local gateway, RFC 8215
	)
	localPrefixes = prefixes(
		"0.0.0.0/8",                                                   // this host, RFC 1122
		"168.63.129.16/32",                                            // the host agent of Azure
		"100.100.100.200/32", "fd00:ec2::254/128", "fd20:ce::254/128", // metadata services of Alibaba, AWS and Google
	)
	// embedding are prefixes of IPv6 addresses that embed an IPv4 address, with the byte at which it begins.
	embedding = map[netip.Prefix]int{
		netip.MustParsePrefix("64:ff9b::/96"):    12, // NAT64, RFC 6052
		netip.MustParsePrefix("2002::/16"):       2,  // 6to4, RFC 3056
		netip.MustParsePrefix("::/96"):           12, // IPv4-compatible, RFC 4291
		netip.MustParsePrefix("::ffff:0:0:0/96"): 12, // IPv4-translated, RFC 2765
	}
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Of returns the distance of an address.
func Of(ip netip.Addr) Distance {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() ||
		contains(localPrefixes, ip) {
		return Local
	}
	for prefix, at := range embedding {
		if raw := ip.As16(); ip.Is6() && prefix.Contains(ip) {
			return Of(netip.AddrFrom4([4]byte(raw[at : at+4])))
		}
	}
	if ip.IsPrivate() || contains(privatePrefixes, ip) {
		return Private
	}
	return Public
}

func contains(list []netip.Prefix, ip netip.Addr) bool {
	for _, prefix := range list {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

// isLocalName reports whether a name means this machine wherever it is resolved (RFC 6761, section 6.3).
func isLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// hostsFile lists the names that the administrator of this machine has given addresses.
const hostsFile = "/etc/hosts"

// isListed reports whether hosts, a file in the format of hosts(5), gives a name this address.
func isListed(hosts, name string, ip netip.Addr) bool {
	file, err := os.Open(hosts)
	if err != nil {
		return false
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) < 2 {
			continue
		}
		if listed, err := netip.ParseAddr(fields[0]); err != nil || listed.Unmap() != ip.Unmap() {
			continue
		}
		for _, alias := range fields[1:] {
			if strings.EqualFold(alias, strings.TrimSuffix(name, ".")) {
				return true
			}
		}
	}
	return false
}

// IsLoopback reports whether the host of a URL is this machine by its name or address, so requests to it stay there.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// may reports whether host may have the address ip at all. An address or a local name in a configuration is the
// operator's decision. Any other name is resolved by a server that a stranger may control, so it never leads to this
// machine, unless hosts(5) lists it.
func may(host string, ip netip.Addr) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if isLocalName(host) {
		return ip.Unmap().IsLoopback()
	}
	return Of(ip) < Local || isListed(hostsFile, host, ip)
}

// Stated returns the distance of a host that is an IP address or a local name: it cannot resolve to anything else.
func Stated(host string) (distance Distance, ok bool) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return Of(ip), true
	}
	return Local, isLocalName(host)
}

// Met remembers the farthest distance at which connections to a server were made. A server that answered from the
// internet once stays there, also if its name resolves to a nearer address later. Met is safe for concurrent use, and
// the zero value is ready to use.
type Met struct {
	farthest atomic.Int32 // Distance+1; 0 before the first connection
}

// Note records a connection.
func (m *Met) Note(d Distance) {
	for {
		was := m.farthest.Load()
		if was != 0 && was <= int32(d)+1 || m.farthest.CompareAndSwap(was, int32(d)+1) {
			return
		}
	}
}

// Distance returns the farthest distance. It returns false before the first connection.
func (m *Met) Distance() (Distance, bool) {
	was := m.farthest.Load()
	return Distance(max(was-1, 0)), was != 0
}
