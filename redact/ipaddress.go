package redact

import (
	"bytes"
	"net/netip"
	"sync"
)

func ipv4At(text []byte, i int) (span, bool) {
	stop, dots := i, 0
	for stop < len(text) && stop-i < len("255.255.255.255") && (isDigit(text[stop]) || text[stop] == '.') {
		if text[stop] == '.' {
			dots++
		}
		stop++
	}
	for stop > i && text[stop-1] == '.' {
		stop--
		dots--
	}
	if dots != 3 || !ends(text, stop) || isNetwork(text, stop) || i > 1 && text[i-1] == '/' && isLetter(text[i-2]) ||
		bytes.HasSuffix(bytes.ToLower(text[max(0, i-9):i]), []byte("version ")) {
		return span{}, false
	}
	address, err := netip.ParseAddr(string(text[i:stop]))
	if err != nil || !isPersonal(address) {
		return span{}, false
	}
	return span{start: i, end: stop, kind: "ip-address"}, true
}

// isNetwork reports whether a prefix length follows the address (CIDR).
func isNetwork(text []byte, stop int) bool {
	return stop+1 < len(text) && text[stop] == '/' && isDigit(text[stop+1])
}

// ipv6At reads the IPv6 address around the colon at text[i].
func ipv6At(text []byte, i int) (span, bool) {
	const most = len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
	start, stop, colons := i, i, 0
	for start > 0 && i-start < 4 && isHex(text[start-1]) {
		start--
	}
	if start > 0 && (continues(text, start) || text[start-1] == ':') {
		return span{}, false
	}
	for stop < len(text) && stop-start < most && (isHex(text[stop]) || text[stop] == ':') {
		if text[stop] == ':' {
			colons++
		}
		stop++
	}
	if colons < 3 || stop-start < 9 || !ends(text, stop) || isNetwork(text, stop) {
		return span{}, false
	}
	address, err := netip.ParseAddr(string(text[start:stop]))
	if err != nil || !isPersonal(address) {
		return span{}, false
	}
	return span{start: start, end: stop, kind: "ip-address"}, true
}

// isPersonal reports whether an address can belong to a person. Private, local, multicast and
// documentation ranges and well-known public resolvers cannot.
func isPersonal(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, prefix := range notPersons() {
		if prefix.Contains(a) {
			return false
		}
	}
	if !a.Is4() {
		return true
	}
	// 1.2.3.4 and 2.5.29.31 are versions, sections and object identifiers far
	// more often than addresses.
	b := a.As4()
	if b[3] == 0 { // a network, or a version
		return false
	}
	return b[0] > 12 || b[1] > 40 || b[2] > 40 || b[3] > 40
}

// notPersons are reserved ranges (IANA's registries of special-purpose addresses) and the public
// resolvers that are common in examples.
var notPersons = sync.OnceValue(func() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4",
		"1.1.1.1/32", "1.0.0.1/32", "8.8.8.8/32", "8.8.4.4/32", "9.9.9.9/32", "2001:db8::/32", "3fff::/20",
		"64:ff9b::/96",
	} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
})
