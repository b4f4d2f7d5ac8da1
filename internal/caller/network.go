package caller

import (
	"net"
	"net/netip"
)

// Network returns the network of a request from the remote address of its connection: the IP
// address without its port, or for IPv6 its /64 prefix, because one client has all of it. If remote
// is not an address, Network returns it without its port.
func Network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if prefix, err := address.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return address.String()
}
