package egress_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/reach"
)

// gate permits hosts unless refuse has them, and keeps what it was asked.
type gate struct {
	mu       sync.Mutex
	refuse   []string
	asked    []string
	outcomes []egress.Outcome
}

func (g *gate) Connect(_ context.Context, host egress.Host) (func(egress.Outcome), error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, host.String())
	if slices.Contains(g.refuse, host.String()) {
		return nil, &egress.Refusal{Reason: "the policy does not permit " + host.String()}
	}
	return func(o egress.Outcome) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.outcomes = append(g.outcomes, o)
	}, nil
}

// sandbox is the sandbox's side of a network, as gVisor's kernel sets it up.
type sandbox struct {
	t       *testing.T
	stack   *stack.Stack
	network *egress.Network
	gate    *gate
}

const port = 443

// newSandbox returns a sandbox that may ask for hosts, all of which are at target.
func newSandbox(t *testing.T, target string, limits egress.Limits, hosts ...string) *sandbox {
	t.Helper()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, target)
	}
	if target == "" {
		dial = (&reach.Dialer{}).DialContext
	}
	return newSandboxWith(t, dial, limits, hosts...)
}

// newSandboxWith returns a sandbox that may ask for hosts.
func newSandboxWith(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), limits egress.Limits,
	hosts ...string) *sandbox {
	t.Helper()
	g := &gate{}
	opts := &egress.Options{Gate: g, Limits: limits, Dial: dial}
	for _, text := range hosts {
		host, err := egress.ParseHost(text)
		if err != nil {
			t.Fatal(err)
		}
		opts.Hosts = append(opts.Hosts, host)
	}
	ours, theirs, err := egress.Pair()
	if err != nil {
		t.Fatal(err)
	}
	network, err := egress.New(ours, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := network.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	return &sandbox{t, inside(t, theirs), network, g}
}

func inside(t *testing.T, theirs *os.File) *stack.Stack {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	link, err := fdbased.New(&fdbased.Options{FDs: []int{int(theirs.Fd())}, MTU: egress.MTU,
		PacketDispatchMode: fdbased.RecvMMsg})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateNIC(1, link); err != nil {
		t.Fatal(err)
	}
	address := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{
		Address: tcpip.AddrFrom4(egress.Sandbox.As4()), PrefixLen: egress.Subnet.Bits()}}
	if err := s.AddProtocolAddress(1, address, stack.AddressProperties{}); err != nil {
		t.Fatal(err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	t.Cleanup(func() {
		s.Destroy()
		theirs.Close()
	})
	return s
}

// resolve asks the name server and returns the address, or the response code.
func (s *sandbox) resolve(name string, kind dnsmessage.Type) (netip.Addr, dnsmessage.RCode) {
	s.t.Helper()
	conn, err := gonet.DialUDP(s.stack, nil, &tcpip.FullAddress{NIC: 1,
		Addr: tcpip.AddrFrom4(egress.Gateway.As4()), Port: 53}, ipv4.ProtocolNumber)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	query := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name + "."), Type: kind,
			Class: dnsmessage.ClassINET}}}
	packed, err := query.Pack()
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := conn.Write(packed); err != nil {
		s.t.Fatal(err)
	}
	response := make([]byte, 4096)
	size, err := conn.Read(response)
	if err != nil {
		s.t.Fatal(err)
	}
	var message dnsmessage.Message
	if err := message.Unpack(response[:size]); err != nil || message.ID != 7 {
		s.t.Fatal(err, message)
	}
	if len(message.Answers) == 0 {
		return netip.Addr{}, message.RCode
	}
	return netip.AddrFrom4(message.Answers[0].Body.(*dnsmessage.AResource).A), message.RCode
}

// dial connects to a name as a program does.
func (s *sandbox) dial(name string, port uint16) (net.Conn, error) {
	address, code := s.resolve(name, dnsmessage.TypeA)
	if !address.IsValid() {
		return nil, fmt.Errorf("no such host: %v", code)
	}
	return s.dialAddress(address, port)
}

func (s *sandbox) dialAddress(address netip.Addr, port uint16) (net.Conn, error) {
	conn, err := gonet.DialContextTCP(s.t.Context(), s.stack, tcpip.FullAddress{NIC: 1,
		Addr: tcpip.AddrFrom4(address.As4()), Port: port}, ipv4.ProtocolNumber)
	if err != nil {
		return nil, err // a nil *TCPConn is not a nil net.Conn
	}
	return conn, nil
}

// client returns an HTTP client inside the sandbox. serverName replaces the server name of TLS, unless it is empty.
func (s *sandbox) client(server *httptest.Server, serverName string) *http.Client {
	transport := server.Client().Transport.(*http.Transport).Clone()
	if transport.TLSClientConfig != nil {
		transport.TLSClientConfig.ServerName = serverName
	}
	transport.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		host, err := egress.ParseHost(address)
		if err != nil {
			return nil, err
		}
		return s.dial(host.Name, host.Port)
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (s *sandbox) asked() []string {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return slices.Clone(s.gate.asked)
}

// refused waits for a refusal with the text.
func (s *sandbox) refused(text string) {
	s.t.Helper()
	for {
		refusals := s.network.Refusals()
		if slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(r, text) }) {
			return
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatalf("got refusals %q, want one with %q", refusals, text)
		case <-time.After(time.Millisecond):
		}
	}
}

func hello(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "hello %s %s %s %s", r.Host, r.Proto, r.Header.Get("User-Agent"), body)
}
