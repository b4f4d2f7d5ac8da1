// Package egress carries the connections of a sandbox to named hosts. A sandbox sends IP packets over a pair of
// sockets. They end in a user-mode TCP/IP stack (gVisor's netstack) in this process, so a sandbox needs no route, no
// network namespace and no privileges on the host, and the host sees only connections that this package opens.
//
// A program reaches a host in three steps:
//
//  1. It resolves the name. The stack answers with an address that identifies the name in this sandbox, if the
//     name is in Options.Hosts, and otherwise with NXDOMAIN. No question leaves the host.
//  2. It connects to the address. The Gate decides about host and port and records the decision. Then the name is
//     resolved on the host, and package reach connects to an address that it has checked.
//  3. It sends a TLS ClientHello or an HTTP/1 request. The server name, or the Host of each request, must be the name.
//     Other protocols are refused.
//
// UDP other than DNS, ICMP and addresses without a name lead nowhere.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The addresses of a sandbox's network (RFC 2544, section C.2.2: not used on the internet).
var (
	// Sandbox is the address of the sandbox's interface.
	Sandbox = netip.MustParseAddr("198.18.0.2")
	// Gateway is the address of the stack, which is also the name server.
	Gateway = netip.MustParseAddr("198.18.0.1")
	// Subnet has the addresses of the interface and of the stack. All others are behind the gateway.
	Subnet = netip.MustParsePrefix("198.18.0.0/15")
)

// MTU is the largest packet of the interface, in bytes.
const MTU = 32 << 10

// Host is a host that a sandbox asked for.
type Host struct {
	Name string // in lower case, without a trailing dot
	Port uint16
}

// String returns name:port.
func (h Host) String() string { return fmt.Sprintf("%s:%d", h.Name, h.Port) }

// ParseHost reads NAME:PORT. The name is a DNS name of at most 253 characters. Addresses are refused, because a
// decision about an address does not cover a name.
func ParseHost(text string) (Host, error) {
	name, port, ok := strings.Cut(text, ":")
	number, err := net.LookupPort("tcp", port)
	if !ok || err != nil || number == 0 || strings.Trim(port, "0123456789") != "" {
		return Host{}, fmt.Errorf("%.300q is not NAME:PORT, such as api.github.com:443", text)
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if !validName(name) {
		return Host{}, fmt.Errorf("%.300q is not a host's name, such as api.github.com", name)
	}
	return Host{name, uint16(number)}, nil
}

// validName reports whether a name consists of labels of letters, digits and hyphens (RFC 1123, section 2.1) and is not
// an address in any notation: its last label has a letter and does not begin with 0x.
func validName(name string) bool {
	if len(name) > 253 {
		return false
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// Outcome describes a connection that has ended.
type Outcome struct {
	Address  netip.AddrPort // the address that was connected to; invalid if no connection was made
	Sent     int64          // bytes to the host
	Received int64          // bytes from the host
	Err      error          // why it failed or was cut; nil if both ends closed it
}

// Gate decides about connections and records them.
type Gate interface {
	// Connect decides whether the sandbox may connect to a host. It may wait for a person. It records the decision
	// durably before it returns. A *Refusal means that the connection is not permitted. Otherwise the caller calls done
	// once, after the connection has ended. Connect and done are safe for concurrent use.
	Connect(ctx context.Context, host Host) (done func(Outcome), err error)
}

// Refusal is the reason why a connection is not made, in one sentence for the program's author.
type Refusal struct{ Reason string }

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// Limits bound the connections of one sandbox. Zero values mean the defaults.
type Limits struct {
	Open      int           // connections at the same time; 32
	Total     int           // connections in all, refused ones included; 1000
	Bytes     int64         // bytes in each direction, of all connections together; 100 MiB
	Idle      time.Duration // without a byte in either direction; 2 minutes
	Handshake time.Duration // until the first bytes of the program are complete; 15 seconds
}

func (l Limits) withDefaults() Limits {
	def := Limits{Open: 32, Total: 1000, Bytes: 100 << 20, Idle: 2 * time.Minute, Handshake: 15 * time.Second}
	if l.Open == 0 {
		l.Open = def.Open
	}
	if l.Total == 0 {
		l.Total = def.Total
	}
	if l.Bytes == 0 {
		l.Bytes = def.Bytes
	}
	if l.Idle == 0 {
		l.Idle = def.Idle
	}
	if l.Handshake == 0 {
		l.Handshake = def.Handshake
	}
	return l
}

// Options are the options of New. Hosts, Gate and Dial are required.
type Options struct {
	Hosts  []Host // the hosts that have a name; the Gate still decides about each connection
	Any    bool   // every name has an address, for a trial that records what a program asks for
	Gate   Gate
	Dial   func(ctx context.Context, network, address string) (net.Conn, error) // a reach.Dialer's DialContext
	Limits Limits
}

// Pair returns the two ends of a network device: ours for New, and theirs for the kernel of the sandbox. Each message
// is an IP packet without an Ethernet header.
func Pair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a network device: %w", err)
	}
	for _, fd := range fds {
		// More than one packet of the largest size fits. The kernel's limit applies if it is lower.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 16*MTU)
	}
	return os.NewFile(uintptr(fds[0]), "network"), os.NewFile(uintptr(fds[1]), "network"), nil
}

// errLimit is the reason of connections that reach a limit.
var errLimit = errors.New("the limit of the sandbox's network is reached")
