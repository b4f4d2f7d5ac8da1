package caller

import (
	"net"
	"net/netip"
)

// Network names where a request comes from, by the remote address of its connection:
// the IP address without its port, of IPv6 the /64 that one client has. A text that is
// no address is returned as it is.
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
