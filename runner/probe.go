package runner

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// NetworkDevice is the name of the network device of a sandbox with Request.Network.
const NetworkDevice = "eth0"

// Network is a network of named hosts. Before anything runs in a sandbox with a network, the sandbox tries what it must
// not reach (docs/design/0060-a-probe-from-inside.md).
type Network struct {
	// Device is the sandbox's end of the device: each message is an IP packet (Spec.Network). The caller closes it.
	Device *os.File
	// Closed are addresses behind the device that must refuse connections.
	Closed []netip.AddrPort
	// Open is called once, after the sandbox has passed its isolation check and before code runs in it. An error ends
	// the sandbox. The network must carry nothing before. nil means that there is nothing to open.
	Open func() error
}

// Parts of a probe's messages (docs/socket.md).
const (
	probeWord  = "probe"
	probeFound = "\n" + probeWord + "\n" // separates the rest of a greeting from what the probe found
)

// elsewhere is what no sandbox may reach: KIND/ADDRESS/PORT. A name is only resolved, and a raw socket only opened.
var elsewhere = [...]string{
	"tcp/169.254.169.254/80", "tcp/100.100.100.200/80", "tcp/168.63.129.16/80", // metadata services
	"tcp/127.0.0.1/22", "tcp/10.0.0.1/443", "tcp/192.168.0.1/443", "tcp/172.17.0.1/2375", // host and private networks
	"tcp/1.1.1.1/443", "udp/1.1.1.1/53", "udp/169.254.169.254/53", "udp/127.0.0.1/53", // the internet, name servers
	"tcp/::1/22", "tcp/fe80::1/80", "tcp/fd00:ec2::254/80", "tcp/2606:4700::1111/443", "tcp/::ffff:169.254.169.254/80",
	"udp/2606:4700::1111/53", // IPv6
	"raw/AF_INET/1", "raw/AF_INET/255", "raw/AF_INET6/58", "raw/AF_PACKET/3", "ping/169.254.169.254/0",
	// The answer of the network's name server also shows that the device works.
	"name/airlock-probe.invalid/0",
}

// harmless are the results that a target of each kind may have.
var harmless = map[string][]string{
	"tcp":  {"ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL"},
	"udp":  {"EAGAIN", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL"},
	"ping": {"EAGAIN", "EACCES", "EPERM", "ENETUNREACH", "EHOSTUNREACH", "EPROTONOSUPPORT", "ENOTSUP"},
	"raw":  {"EACCES", "EPERM", "EPROTONOSUPPORT", "EAFNOSUPPORT"},
	"name": {"ENOTFOUND"},
}

// probe is the proof of one sandbox with a network that it reaches nothing else.
type probe struct {
	bait    net.Listener // of this process, on the host's loopback
	targets []string
}

// newProbe returns a probe. The caller must close it.
func newProbe(n *Network) (*probe, error) {
	bait, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the probe of a sandbox's network: %w", err)
	}
	targets := append(slices.Clone(elsewhere[:]), "tcp/"+strings.Replace(bait.Addr().String(), ":", "/", 1))
	for _, closed := range n.Closed {
		targets = append(targets, fmt.Sprintf("tcp/%s/%d", closed.Addr(), closed.Port()))
	}
	return &probe{bait, targets}, nil
}

// line is what the guest gets.
func (p *probe) line() string { return probeWord + " " + strings.Join(p.targets, " ") + "\n" }

// check checks a greeting with the results of the probe.
func (p *probe) check(said string) error {
	said, found, _ := strings.Cut(said, probeFound)
	if err := checkGreeting(said+"\n", true); err != nil {
		return err
	}
	results := strings.Split(strings.TrimSuffix(found, "\n"), "\n")
	for i, target := range p.targets {
		if i >= len(results) {
			return fmt.Errorf("code in it did not report whether it reaches %s", target)
		}
		got, result, _ := strings.Cut(results[i], " ")
		kind, _, _ := strings.Cut(target, "/")
		if got != target || !slices.Contains(harmless[kind], result) {
			return fmt.Errorf("code in it must not reach %s: the attempt ended with %.100q", target, results[i])
		}
	}
	return nil
}

// close ends the probe.
func (p *probe) close() { _ = p.bait.Close() }

// device returns the sandbox's end of the device, or nil.
func (n *Network) device() *os.File {
	if n == nil {
		return nil
	}
	return n.Device
}

// open opens the network of a sandbox that has passed its isolation check.
func (n *Network) open() error {
	if n == nil || n.Open == nil {
		return nil
	}
	return n.Open()
}
