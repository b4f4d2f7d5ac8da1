package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/reach"
)

// Issue 30: HTTPS and HTTP reach a listed host, in HTTP/1 and HTTP/2, and both ends see the bytes unchanged.
func TestAListedHostIsReached(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	s := newSandbox(t, secure.Listener.Addr().String(), egress.Limits{}, "example.com:443")
	client := s.client(secure, "example.com")
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	large := strings.Repeat("x", 1<<20)
	response, err := client.Post("https://example.com/", "text/plain", strings.NewReader(large))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.HasPrefix(string(body), "hello example.com HTTP/2.0") ||
		!strings.HasSuffix(string(body), large) {
		t.Fatalf("got %.100q, %v", body, err)
	}
	client.CloseIdleConnections()

	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	p := newSandbox(t, plain.Listener.Addr().String(), egress.Limits{}, "example.com:80")
	for range 3 { // on one connection
		response, err := p.client(plain, "").Post("http://example.com/a?b", "text/plain", strings.NewReader("sent"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		if want := "hello example.com HTTP/1.1 Go-http-client/1.1 sent"; string(body) != want {
			t.Errorf("got %q, want %q", body, want)
		}
	}
	if err := s.network.Close(); err != nil {
		t.Fatal(err)
	}
	if len(s.gate.outcomes) != 1 || s.gate.outcomes[0].Sent < 1<<20 || s.gate.outcomes[0].Received < 1<<20 ||
		!s.gate.outcomes[0].Address.IsValid() {
		t.Errorf("got outcomes %+v", s.gate.outcomes)
	}
}

// Issue 30: names that were not asked for have no address, and no question about them leaves the sandbox.
func TestOtherNamesHaveNoAddress(t *testing.T) {
	s := newSandbox(t, "", egress.Limits{}, "api.example.com:443", "api.example.com:8443")
	for _, name := range []string{"example.com", "evil.com", "secret-data.evil.com", "api.example.com.evil.com",
		"com"} {
		if address, code := s.resolve(name, dnsmessage.TypeA); address.IsValid() || code != dnsmessage.RCodeNameError {
			t.Errorf("%s: got %v, %v", name, address, code)
		}
		s.refused(`"` + name + `" is not in the network list`)
	}
	for _, name := range []string{"api.example.com", "API.example.COM"} {
		if address, _ := s.resolve(name, dnsmessage.TypeA); reach.Of(address) != reach.Public {
			t.Errorf("%s: got %v", name, address)
		}
		if address, code := s.resolve(name, dnsmessage.TypeTXT); address.IsValid() || code != dnsmessage.RCodeSuccess {
			t.Errorf("%s, TXT: got %v, %v", name, address, code)
		}
	}
	conn, err := s.dialAddress(egress.Gateway, 53)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{0, 3, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a query that cannot be read: got %v, want the end of the connection", err)
	}
}

// Issue 30: a connection to an address, to another port, or one that the gate refuses is reset.
func TestOtherConnectionsAreReset(t *testing.T) {
	s := newSandbox(t, "127.0.0.1:1", egress.Limits{}, "example.com:443", "refused.example:443")
	s.gate.refuse = []string{"refused.example:443"}
	for _, address := range []string{
		"10.0.0.1", "192.168.1.1", "169.254.169.254", "168.63.129.16", "1.1.1.1", "198.18.0.1", "198.18.255.255",
	} {
		if conn, err := s.dialAddress(netip.MustParseAddr(address), port); err == nil {
			conn.Close()
			t.Errorf("%s was reached", address)
		}
	}
	for name, port := range map[string]uint16{"example.com": 80, "refused.example": 443} {
		if conn, err := s.dial(name, port); err == nil {
			conn.Close()
			t.Errorf("%s:%d was reached", name, port)
		}
	}
	s.refused(`"example.com:80" is not in the network list`)
	s.refused("the policy does not permit refused.example:443")
	s.refused("connect by name")
	if asked := s.asked(); !slices.Equal(asked, []string{"refused.example:443"}) {
		t.Errorf("the gate was asked about %q", asked)
	}
	// The host is away.
	if conn, err := s.dial("example.com", 443); err == nil {
		conn.Close()
		t.Error("a host that is away was reached")
	}
	s.refused("example.com:443 cannot be connected to: it refuses")
}

// Issue 30: a name that leads to an address of this machine or its network is not connected to. The address is checked
// by the connection, so a name that changes its address (DNS rebinding) gains nothing.
func TestNearAddressesAreRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	s := newSandbox(t, "", egress.Limits{}, "localhost:"+port)
	if _, err := s.client(server, "").Get("http://localhost:" + port); err == nil {
		t.Error("a server on the loopback device of the host was reached")
	}
	s.refused("its address is not on the internet")
}

// Issue 30: the server name of TLS and the Host of each request must be the name that was decided.
func TestTheProtocolNamesTheHost(t *testing.T) {
	var reached bytes.Buffer
	var mu sync.Mutex
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 1<<16)
				for {
					size, err := conn.Read(buf)
					mu.Lock()
					reached.Write(buf[:size])
					mu.Unlock()
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	get := func(host string) string { return "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n" }
	for name, c := range map[string]struct{ sent, refused string }{
		"another Host":     {get("evil.com"), `the Host of a request is "evil.com"`},
		"another port":     {get("example.com:80"), `the Host of a request is "example.com:80"`},
		"a second request": {get("example.com") + get("second.evil"), `the Host of a request is "second.evil"`},
		"a body, then a request": {"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\n\r\nx" +
			get("third.evil"), `"third.evil"`},
		"an absolute target": {"GET http://evil.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
			`the Host of a request is "evil.com"`},
		"CONNECT": {"CONNECT evil.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n", "CONNECT is refused"},
		"an upgrade": {"GET / HTTP/1.1\r\nHost: example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
			"Upgrade is refused"},
		"two lengths": {"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\n",
			"only TLS and HTTP/1"},
		"no Host":         {"GET / HTTP/1.0\r\n\r\n", `the Host of a request is ""`},
		"HTTP/2 in clear": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "Host of a request"},
		"SSH":             {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "only TLS and HTTP/1"},
		"a long header":   {"GET / HTTP/1.1\r\nHost: example.com\r\nA: " + strings.Repeat("a", 80<<10), "too large"},
		"broken TLS":      {"\x16\x03\x01\x00\x05hello", "not a TLS ClientHello"},
		"no server name":  {clientHello(t, ""), "no server name"},
		"another name":    {clientHello(t, "evil.com"), `the server name of TLS is "evil.com"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t, server.Addr().String(), egress.Limits{}, "example.com:443")
			conn, err := s.dial("example.com", port)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// The connection may end before everything was sent.
			_, _ = io.WriteString(conn, c.sent)
			s.refused(c.refused)
		})
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(reached.String(), "evil") {
		t.Errorf("the host got %q", &reached)
	}
}

// clientHello returns the first message of a TLS client.
func clientHello(t *testing.T, name string) string {
	t.Helper()
	return firstRecord(t, &tls.Config{ServerName: name, InsecureSkipVerify: true})
}

// firstRecord returns the first record of a TLS client.
func firstRecord(t *testing.T, config *tls.Config) string {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() { _ = tls.Client(ours, config).Handshake() }()
	defer ours.Close()
	defer theirs.Close()
	reader := bufio.NewReader(theirs)
	head, err := reader.Peek(5)
	if err != nil {
		t.Fatal(err)
	}
	record := make([]byte, 5+int(head[3])<<8+int(head[4]))
	if _, err := io.ReadFull(reader, record); err != nil {
		t.Fatal(err)
	}
	return string(record)
}

// Issue 30: connections and bytes are limited, and a connection over a limit ends.
func TestConnectionsAreLimited(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	at := server.Listener.Addr().String()

	s := newSandbox(t, at, egress.Limits{Bytes: 64 << 10}, "example.com:80")
	_, err := s.client(server, "").Post("http://example.com/", "text/plain",
		strings.NewReader(strings.Repeat("x", 1<<20)))
	if err == nil {
		t.Error("more bytes than the limit were sent")
	}
	s.refused("65536 bytes in one direction")

	s = newSandbox(t, at, egress.Limits{Open: 2, Total: 4}, "example.com:80")
	var open []net.Conn
	for range 2 {
		conn, err := s.dial("example.com", 80)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	if conn, err := s.dial("example.com", 80); err == nil {
		conn.Close()
		t.Error("a third connection at the same time was made")
	}
	s.refused("more than 2 connections at the same time")
	for _, conn := range open {
		conn.Close()
	}

	s = newSandbox(t, at, egress.Limits{Open: 1}, "example.com:80")
	names, err := s.dialAddress(egress.Gateway, 53)
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	if conn, err := s.dialAddress(egress.Gateway, 53); err == nil {
		conn.Close()
		t.Error("connections to the name server are not limited")
	}
	s.refused("more than 1 connections at the same time")

	s = newSandbox(t, at, egress.Limits{Handshake: time.Millisecond}, "example.com:80")
	conn, err := s.dial("example.com", 80)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection without a request stays open")
	}
	s.refused("timeout")
}

// Issue 30: packets that are not a connection or a question have no effect, and the network keeps working.
func TestHostilePackets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	g := &gate{}
	ours, theirs, err := egress.Pair()
	if err != nil {
		t.Fatal(err)
	}
	network, err := egress.New(ours, &egress.Options{Gate: g, Hosts: []egress.Host{{Name: "example.com", Port: 80}},
		Dial: func(ctx context.Context, n, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, n, server.Listener.Addr().String())
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	if err := network.Open(); err != nil {
		t.Fatal(err)
	}
	ping := make([]byte, 28)
	header.IPv4(ping).Encode(&header.IPv4Fields{TotalLength: 28, TTL: 64, Protocol: uint8(header.ICMPv4ProtocolNumber),
		SrcAddr: tcpip.AddrFrom4(egress.Sandbox.As4()), DstAddr: tcpip.AddrFrom4(egress.Gateway.As4())})
	for _, packet := range [][]byte{
		{1}, {0x45}, bytes.Repeat([]byte{0xff}, 60), bytes.Repeat([]byte{0x45}, egress.MTU),
		append([]byte{0x60}, make([]byte, 39)...), ping,
	} {
		if _, err := theirs.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	s := &sandbox{t, inside(t, theirs), network, g}
	response, err := s.client(server, "").Get("http://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}

func TestParseHost(t *testing.T) {
	for text, want := range map[string]string{
		"api.github.com:443": "api.github.com:443", "API.GitHub.com.:443": "api.github.com:443",
		"a_b.example:1": "a_b.example:1",
		"localhost:80":  "localhost:80",
		// Addresses in every notation, and other mistakes.
		"127.0.0.1:80": "", "2130706433:80": "", "0x7f000001:80": "", "0177.0.0.1:80": "", "127.1:80": "",
		"[::1]:80":  "",
		"1.0x7f:80": "", "github.com": "", "github.com:": "", "github.com:0": "", "github.com:https": "",
		"github.com:65536": "",
		":443":             "", "*.github.com:443": "", "a..b:443": "", "-a.b:443": "", "gith\u0443b.com:443": "",
		"a b:443":                "",
		"https://github.com:443": "", "user@github.com:443": "", strings.Repeat("a", 64) + ".com:443": "",
		strings.Repeat("a.", 127) + "com:443": "", "github.com:+443": "",
	} {
		host, err := egress.ParseHost(text)
		got := ""
		if err == nil {
			got = host.String()
		}
		if got != want {
			t.Errorf("ParseHost(%q): got %q (%v), want %q", text, got, err, want)
		}
	}
}
