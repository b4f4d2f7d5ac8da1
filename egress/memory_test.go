package egress_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// waitingGate decides nothing until the network ends, as for a question that nobody answers.
type waitingGate struct{}

func (waitingGate) Connect(ctx context.Context, host egress.Host) (func(egress.Outcome), error) {
	<-ctx.Done()
	return nil, &egress.Refusal{Reason: "the network has ended"}
}

// segment is a TCP segment of the sandbox as a packet.
func segment(to tcpip.Address, fields header.TCPFields, payload []byte) []byte {
	size := header.IPv4MinimumSize + header.TCPMinimumSize + len(payload)
	packet := make([]byte, size)
	copy(packet[header.IPv4MinimumSize+header.TCPMinimumSize:], payload)
	ip, segment := header.IPv4(packet), header.TCP(packet[header.IPv4MinimumSize:])
	from := tcpip.AddrFrom4(egress.Sandbox.As4())
	ip.Encode(&header.IPv4Fields{TotalLength: uint16(size), TTL: 64, Protocol: uint8(header.TCPProtocolNumber),
		SrcAddr: from, DstAddr: to})
	ip.SetChecksum(^ip.CalculateChecksum())
	fields.DataOffset, fields.WindowSize = header.TCPMinimumSize, 65535
	segment.Encode(&fields)
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, from, to, uint16(size-header.IPv4MinimumSize))
	segment.SetChecksum(^segment.CalculateChecksum(checksum.Checksum(payload, sum)))
	return packet
}

// datagram is a UDP packet to the name server, or a fragment of one that never becomes complete.
func datagram(id uint16, more bool, payload []byte) []byte {
	size := header.IPv4MinimumSize + header.UDPMinimumSize + len(payload)
	packet := make([]byte, size)
	copy(packet[header.IPv4MinimumSize+header.UDPMinimumSize:], payload)
	ip := header.IPv4(packet)
	fields := &header.IPv4Fields{TotalLength: uint16(size), ID: id, TTL: 64, Protocol: uint8(header.UDPProtocolNumber),
		SrcAddr: tcpip.AddrFrom4(egress.Sandbox.As4()), DstAddr: tcpip.AddrFrom4(egress.Gateway.As4())}
	if more {
		fields.Flags = header.IPv4FlagMoreFragments
	}
	ip.Encode(fields)
	ip.SetChecksum(^ip.CalculateChecksum())
	header.UDP(packet[header.IPv4MinimumSize:]).Encode(&header.UDPFields{SrcPort: 9, DstPort: 53,
		Length: uint16(header.UDPMinimumSize + len(payload))})
	return packet
}

// Issue 30: the kernel of a sandbox sends any packets and takes none. The host's memory for it is bounded. Each attack
// sends several times the bound.
func TestMemoryIsBounded(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go talk(server)
	for _, attack := range []struct {
		name string
		gate egress.Gate
		any  bool
		most int64
		act  func(t *testing.T, device *os.File)
	}{
		{"connections that are never decided", waitingGate{}, false, 4 << 20, sendSYNs},
		{"connections that are never completed", &gate{}, false, 8 << 20, sendSYNs},
		{"datagrams that are never complete", &gate{}, false, 12 << 20, func(t *testing.T, device *os.File) {
			for i := range 40_000 {
				send(t, device, datagram(uint16(i), true, make([]byte, 1400)))
			}
		}},
		{"names of a trial", &gate{}, true, 4 << 20, func(t *testing.T, device *os.File) {
			label := strings.Repeat("x", 60)
			for i := range 60_000 {
				send(t, device, datagram(0, false, query(t, fmt.Sprintf("%d.%s.%[2]s.%[2]s.com", i, label))))
			}
		}},
		{"segments with gaps between them", &gate{}, false, 24 << 20, sendGaps},
		{"answers that are not taken", &gate{}, false, 24 << 20, sendRequests},
	} {
		t.Run(attack.name, func(t *testing.T) {
			before := testenv.Heap()
			ours, theirs, err := egress.Pair()
			if err != nil {
				t.Fatal(err)
			}
			defer theirs.Close()
			network, err := egress.New(ours, &egress.Options{Gate: attack.gate, Any: attack.any,
				Hosts:  []egress.Host{{Name: "example.com", Port: 80}},
				Limits: egress.Limits{Total: 1 << 20, Bytes: 1 << 40},
				Dial: func(ctx context.Context, n, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, n, server.Addr().String())
				}})
			if err != nil {
				t.Fatal(err)
			}
			defer network.Close()
			if err := network.Open(); err != nil {
				t.Fatal(err)
			}
			attack.act(t, theirs)
			if grown := testenv.Heap() - before; grown > attack.most {
				t.Errorf("the host holds %d bytes for the sandbox, want at most %d", grown, attack.most)
			} else {
				t.Logf("%d bytes", grown)
			}
		})
	}
}

// talk answers each connection without an end.
func talk(server net.Listener) {
	for {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var err error
			for answer := make([]byte, 64<<10); err == nil; {
				_, err = conn.Write(answer)
			}
		}()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
}

func send(t *testing.T, device *os.File, packet []byte) {
	t.Helper()
	if _, err := device.Write(packet); err != nil {
		t.Fatal(err)
	}
}

func query(t *testing.T, name string) []byte {
	t.Helper()
	message := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name + "."),
		Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	packed, err := message.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// host is the address of example.com in the sandbox.
var host = tcpip.AddrFrom4([4]byte{11, 0, 0, 1})

// sendSYNs begins a connection from each port.
func sendSYNs(t *testing.T, device *os.File) {
	for port := range 65_535 {
		send(t, device, segment(host, header.TCPFields{SrcPort: uint16(port + 1), DstPort: 80, SeqNum: 1,
			Flags: header.TCPFlagSyn}, nil))
	}
}

// receive takes packets of the stack until there is one for a port that counts.
func receive(t *testing.T, device *os.File, port uint16, counts func(header.TCP) bool) header.TCP {
	t.Helper()
	packet := make([]byte, egress.MTU)
	for {
		size, err := device.Read(packet)
		if err != nil {
			t.Fatal(err)
		}
		ip := header.IPv4(packet[:size])
		answer := header.TCP(ip.Payload())
		if ip.TransportProtocol() == header.TCPProtocolNumber && answer.DestinationPort() == port && counts(answer) {
			return answer
		}
	}
}

// connect begins a connection and returns the number of the byte that the stack expects to be acknowledged, or false if
// it refuses the connection.
func connect(t *testing.T, device *os.File, port uint16) (uint32, bool) {
	t.Helper()
	send(t, device, segment(host, header.TCPFields{SrcPort: port, DstPort: 80, SeqNum: 1, Flags: header.TCPFlagSyn},
		nil))
	answer := receive(t, device, port, func(header.TCP) bool { return true })
	if answer.Flags().Contains(header.TCPFlagRst) {
		return 0, false
	}
	next := answer.SequenceNumber() + 1
	send(t, device, segment(host, header.TCPFields{SrcPort: port, DstPort: 80, SeqNum: 2, AckNum: next,
		Flags: header.TCPFlagAck}, nil))
	return next, true
}

// sendGaps opens as many connections as it can, and sends every byte but the first of each.
func sendGaps(t *testing.T, device *os.File) {
	opened := 0
	for port := uint16(1); port <= 100; port++ {
		ack, ok := connect(t, device, port)
		if !ok {
			continue
		}
		opened++
		for offset := range uint32(1000) {
			send(t, device, segment(host, header.TCPFields{SrcPort: port, DstPort: 80, SeqNum: 3 + offset*1400,
				AckNum: ack, Flags: header.TCPFlagAck}, make([]byte, 1400)))
		}
	}
	if opened == 0 {
		t.Error("no connection was opened")
	}
}

// sendRequests opens as many connections as it can and takes no answer.
func sendRequests(t *testing.T, device *os.File) {
	request := []byte("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
	opened := 0
	for port := uint16(1); port <= 100; port++ {
		ack, ok := connect(t, device, port)
		if !ok {
			continue
		}
		opened++
		send(t, device, segment(host, header.TCPFields{SrcPort: port, DstPort: 80, SeqNum: 2, AckNum: ack,
			Flags: header.TCPFlagAck | header.TCPFlagPsh}, request))
		receive(t, device, port, func(answer header.TCP) bool { return len(answer.Payload()) > 0 })
	}
	if opened == 0 {
		t.Error("no connection was opened")
	}
}
