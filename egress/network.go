package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

// The resources of a stack.
const (
	queued      = 256       // packets to the sandbox
	tcpBuffer   = 256 << 10 // bytes of a connection in each direction, at most
	pendingSYNs = 64        // connections that are being decided
	dnsPort     = 53
	maxDNS      = 4096 // bytes of a DNS message
	maxRefusals = 16   // refusals that are kept for Refusals
)

// Network is the network of one sandbox.
type Network struct {
	opts  Options
	names *names
	link  *channel.Endpoint
	stack *stack.Stack
	conn  net.Conn // to the sandbox
	stop  context.CancelCauseFunc
	wg    sync.WaitGroup

	opened         atomic.Bool
	total          atomic.Int64 // connections that were requested
	open           atomic.Int64
	sent, received atomic.Int64

	mu       sync.Mutex
	closed   bool
	refusals []string
	breached error // a connection before Open that would have been decided
}

// silence drops the messages that netstack logs to stderr: a sandbox could cause any number of them.
var silence = sync.OnceFunc(func() { log.SetTarget(log.GoogleEmitter{Writer: &log.Writer{Next: io.Discard}}) })

const nic tcpip.NICID = 1

// New starts the network behind a device of Pair. It takes over ours in every case. Before Open, it refuses all
// connections. The caller must call Close after the sandbox has ended.
func New(ours *os.File, opts *Options) (*Network, error) {
	silence()
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, fmt.Errorf("opening a network device: %w", err)
	}
	n := &Network{opts: *opts, names: newNames(opts.Hosts), conn: conn, link: channel.New(queued, MTU, "")}
	n.opts.Limits = opts.Limits.withDefaults()
	ctx, stop := context.WithCancelCause(context.Background())
	n.stop = stop
	n.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
	})
	if err := n.configure(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("configuring a sandbox's network: %w", err), n.Close())
	}
	n.start(n.receive, func() { n.transmit(ctx) })
	return n, nil
}

// Open lets connections be decided, and with Options.Any lets all names have addresses. Before it, the sandbox is
// probed (package runner): its attempts are neither counted nor kept nor decided. The error reports an attempt that
// would have been decided.
func (n *Network) Open() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.breached == nil {
		n.names.open(n.opts.Any)
		n.opened.Store(true)
	}
	return n.breached
}

// Closed returns addresses that lead to no host, for the sandbox to try: an address without a name, another port of a
// name, and the stack itself.
func (n *Network) Closed() []netip.AddrPort {
	closed := []netip.AddrPort{netip.AddrPortFrom(Gateway, 80)}
	if len(n.opts.Hosts) > 0 {
		port := uint16(1)
		for slices.ContainsFunc(n.opts.Hosts, func(h Host) bool { return h.Port == port }) {
			port++
		}
		closed = append(closed, netip.AddrPortFrom(firstName, port))
	}
	for _, address := range []netip.Addr{Subnet.Addr(), firstName.Prev(), netip.MustParseAddr("198.19.255.254")} {
		closed = append(closed, netip.AddrPortFrom(address, 443))
	}
	return closed
}

// start runs functions until Close.
func (n *Network) start(functions ...func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for _, f := range functions {
		n.wg.Go(f)
	}
}

// configure sets addresses, routes and handlers.
func (n *Network) configure(ctx context.Context) error {
	if err := n.stack.CreateNIC(nic, n.link); err != nil {
		return errors.New(err.String())
	}
	// The stack accepts packets for every address of the subnet.
	if err := n.stack.SetPromiscuousMode(nic, true); err != nil {
		return errors.New(err.String())
	}
	if err := n.stack.SetSpoofing(nic, true); err != nil {
		return errors.New(err.String())
	}
	address := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(Gateway.As4()), PrefixLen: Subnet.Bits()}}
	if err := n.stack.AddProtocolAddress(nic, address, stack.AddressProperties{}); err != nil {
		return errors.New(err.String())
	}
	n.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	timeWait := tcpip.TCPTimeWaitTimeoutOption(time.Millisecond) // no packet is delayed between two sockets
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: 64 << 10, Max: tcpBuffer},
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: 64 << 10, Max: tcpBuffer},
		&timeWait,
	} {
		if err := n.stack.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return errors.New(err.String())
		}
	}
	forwarder := tcp.NewForwarder(n.stack, 0, pendingSYNs, func(r *tcp.ForwarderRequest) { n.accept(ctx, r) })
	n.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, forwarder.HandlePacket)
	local := tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4(Gateway.As4()), Port: dnsPort}
	server, err := gonet.DialUDP(n.stack, &local, nil, ipv4.ProtocolNumber)
	if err != nil {
		return err
	}
	n.start(func() { n.serveDNS(ctx, server) })
	return nil
}

// receive passes packets of the sandbox to the stack.
func (n *Network) receive() {
	packet := make([]byte, MTU+header.IPv4MaximumHeaderSize)
	for {
		size, err := n.conn.Read(packet)
		if err != nil || size == 0 {
			n.stop(errors.New("the sandbox has ended"))
			return
		}
		if !accepted(packet[:size]) {
			continue
		}
		buf := stack.NewPacketBuffer(stack.PacketBufferOptions{
			Payload: buffer.MakeWithData(slices.Clone(packet[:size])),
		})
		n.link.InjectInbound(ipv4.ProtocolNumber, buf)
		buf.DecRef()
	}
}

// accepted reports whether a packet is IPv4 from the sandbox's address, with TCP, or UDP to the name server.
func accepted(packet []byte) bool {
	if len(packet) < header.IPv4MinimumSize || packet[0]>>4 != 4 {
		return false
	}
	p := header.IPv4(packet)
	if !p.IsValid(len(packet)) || p.SourceAddress() != tcpip.AddrFrom4(Sandbox.As4()) {
		return false
	}
	switch p.TransportProtocol() {
	case header.TCPProtocolNumber:
		return true
	case header.UDPProtocolNumber:
		return p.DestinationAddress() == tcpip.AddrFrom4(Gateway.As4())
	}
	return false
}

// transmit passes packets of the stack to the sandbox.
func (n *Network) transmit(ctx context.Context) {
	for {
		packet := n.link.ReadContext(ctx)
		if packet == nil {
			return
		}
		view := packet.ToView()
		_, err := n.conn.Write(view.AsSlice())
		view.Release()
		packet.DecRef()
		if err != nil {
			n.stop(err)
			return
		}
	}
}

// serveDNS answers queries over UDP.
func (n *Network) serveDNS(ctx context.Context, server *gonet.UDPConn) {
	defer server.Close()
	defer context.AfterFunc(ctx, func() { server.Close() })()
	query := make([]byte, maxDNS)
	for {
		size, from, err := server.ReadFrom(query)
		if err != nil {
			return
		}
		if response := n.answer(query[:size]); response != nil {
			_, _ = server.WriteTo(response, from)
		}
	}
}

// answer returns the response to a query, or nil. A name that is not listed is a refusal.
func (n *Network) answer(query []byte) []byte {
	response, asked, known := n.names.answer(query)
	if asked != "" && !known {
		n.refuse(notListed(asked))
	}
	return response
}

func notListed(name string) string {
	return fmt.Sprintf("%s is not in the network list of the run", strconv.Quote(clip(name)))
}

func clip(name string) string { return name[:min(len(name), 253)] }

// refuse keeps a reason for Refusals.
func (n *Network) refuse(reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.opened.Load() && len(n.refusals) < maxRefusals && !slices.Contains(n.refusals, reason) {
		n.refusals = append(n.refusals, reason)
	}
}

// Refusals returns the reasons why connections and names were refused, each once, the first 16 of them.
func (n *Network) Refusals() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.refusals)
}

// accept is called for each request for a connection, in a goroutine of the forwarder.
func (n *Network) accept(ctx context.Context, r *tcp.ForwarderRequest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		r.Complete(true)
		return
	}
	n.wg.Go(func() { n.connect(ctx, r) })
}

// connect decides about a connection, opens it and carries it.
func (n *Network) connect(ctx context.Context, r *tcp.ForwarderRequest) {
	id := r.ID()
	address := netip.AddrFrom4(id.LocalAddress.As4())
	if !n.opened.Load() {
		n.try(address, id.LocalPort)
		r.Complete(true)
		return
	}
	defer n.open.Add(-1)
	switch open, total := n.open.Add(1), n.total.Add(1); {
	case open > int64(n.opts.Limits.Open):
		n.refuse(fmt.Sprintf("more than %d connections at the same time", n.opts.Limits.Open))
		r.Complete(true)
		return
	case total > int64(n.opts.Limits.Total):
		n.refuse(fmt.Sprintf("more than %d connections", n.opts.Limits.Total))
		r.Complete(true)
		return
	}
	if address == Gateway && id.LocalPort == dnsPort {
		if conn, ok := n.endpoint(ctx, r); ok {
			n.serveDNSOverTCP(ctx, conn)
			conn.settle(ctx)
		}
		return
	}
	host, err := n.hostAt(address, id.LocalPort)
	if err != nil {
		n.refuse(err.Error())
		r.Complete(true)
		return
	}
	done, err := n.opts.Gate.Connect(ctx, host)
	if err != nil {
		n.refuse(err.Error())
		r.Complete(true)
		return
	}
	outcome, local := n.carry(ctx, r, host)
	done(outcome)
	local.settle(ctx)
}

// try notes whether a connection before Open would have been decided.
func (n *Network) try(address netip.Addr, port uint16) {
	host, err := n.hostAt(address, port)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.breached = fmt.Errorf("it connected to %s before it was checked", host)
}

// hostAt returns the host for which an address and a port stand.
func (n *Network) hostAt(address netip.Addr, port uint16) (Host, error) {
	name, ok := n.names.nameAt(address)
	if !ok {
		return Host{}, fmt.Errorf("%s is an address without a name: connect by name",
			netip.AddrPortFrom(address, port))
	}
	host := Host{name, port}
	if any := n.opts.Any && n.opened.Load(); !any && !slices.Contains(n.opts.Hosts, host) {
		return Host{}, errors.New(notListed(host.String()))
	}
	return host, nil
}

// serveDNSOverTCP answers one query after another (RFC 7766).
func (n *Network) serveDNSOverTCP(ctx context.Context, conn *endpoint) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(n.opts.Limits.Handshake))
	var size [2]byte
	for {
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		response := n.answer(query)
		if response == nil {
			return
		}
		message := append(binary.BigEndian.AppendUint16(nil, uint16(len(response))), response...)
		if _, err := conn.Write(message); err != nil {
			return
		}
	}
}

// Close ends all connections and waits for them. Calling it twice is fine.
func (n *Network) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.stop(errors.New("the network was closed"))
	err := n.conn.Close()
	n.link.Close()
	n.wg.Wait()
	n.stack.Destroy()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
