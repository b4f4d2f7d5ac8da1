package egress_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/reach"
)

// nameServer answers each question for an address with the next of its answers, with the TTL 0.
type nameServer struct {
	t     *testing.T
	mu    sync.Mutex
	turns map[string][]answer // by name and type; the last one is repeated
	asked []string
}

// answer is a CNAME, or an address.
type answer struct{ alias, address string }

// resolver serves names over UDP and returns a resolver that asks there.
func resolver(t *testing.T, turns map[string][]answer) (*net.Resolver, *nameServer) {
	t.Helper()
	s := &nameServer{t: t, turns: turns}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(s.answer(buf[:size]), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}, s
}

func (s *nameServer) answer(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Additionals = true, nil
	question := m.Questions[0]
	name, kind := strings.TrimSuffix(question.Name.String(), "."), question.Type.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, name)
	for range 9 { // of a chain
		key := name + " " + kind
		turns := s.turns[key]
		if len(turns) == 0 {
			break
		}
		if len(turns) > 1 {
			s.turns[key] = turns[1:]
		}
		head := dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name + "."), Class: question.Class}
		if alias := turns[0].alias; alias != "" {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head,
				Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(alias + ".")}})
			name = alias
			continue
		}
		address := netip.MustParseAddr(turns[0].address)
		var body dnsmessage.ResourceBody = &dnsmessage.AAAAResource{AAAA: address.As16()}
		if question.Type == dnsmessage.TypeA {
			body = &dnsmessage.AResource{A: address.As4()}
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: body})
		break
	}
	packed, err := m.Pack()
	if err != nil {
		s.t.Error(err)
	}
	return packed
}

const a, aaaa = " TypeA", " TypeAAAA"

// newResolvedSandbox returns a sandbox whose hosts are resolved by a hostile name server.
func newResolvedSandbox(t *testing.T, turns map[string][]answer, hosts ...string) (*sandbox, *nameServer) {
	t.Helper()
	names, server := resolver(t, turns)
	s := newSandboxWith(t, (&reach.Dialer{Resolver: names}).DialContext, egress.Limits{}, hosts...)
	return s, server
}

// Issue 30: a name may resolve to anything: each address is checked by the connection that uses it, whatever the name
// resolved to before (DNS rebinding, TTL 0), and whatever aliases led to it.
func TestRebinding(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	reached := make(chan struct{}, 9)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
			reached <- struct{}{}
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{
		"127.0.0.1", "0.0.0.0", "10.0.0.1", "169.254.169.254", "168.63.129.16", "100.100.100.200", "192.168.1.1",
		"224.0.0.1", "198.18.0.1", "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1",
		"::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "fe80::1", "fd00:ec2::254", "ff02::1",
		"2001:0:7f00:1::",
	}
	for _, address := range addresses {
		t.Run(address, func(t *testing.T) {
			key := "example.com" + aaaa
			if netip.MustParseAddr(address).Is4() {
				key = "example.com" + a
			}
			direct, _ := newResolvedSandbox(t, map[string][]answer{key: {{address: address}}}, "example.com:"+port)
			fails(t, direct, port)
			alias := strings.Replace(key, "example.com", "inside.example.net", 1)
			chain, _ := newResolvedSandbox(t, map[string][]answer{key: {{alias: "inside.example.net"}},
				alias: {{address: address}}}, "example.com:"+port)
			fails(t, chain, port)
		})
	}
	// Another address for each question, with the TTL 0.
	rebound, server := newResolvedSandbox(t, map[string][]answer{
		"example.com" + a: {{address: "127.0.0.1"}, {address: "169.254.169.254"}, {address: "127.0.0.1"}}},
		"example.com:"+port)
	for range 3 {
		fails(t, rebound, port)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if len(server.asked) < 3 {
		t.Errorf("the name server was asked %q, want a question for each connection", server.asked)
	}
	select {
	case <-reached:
		t.Error("a server on this machine was reached")
	default:
	}
}

// Issue 30: before a network is opened, it refuses every connection without a question to the gate, and keeps nothing
// of it. A connection that would have been decided keeps it closed.
func TestNothingIsCarriedBeforeOpen(t *testing.T) {
	server := newSink(t)
	for _, c := range []struct {
		name    string
		attempt func(*sandbox, []netip.AddrPort)
		breach  string
	}{
		{"what is closed", func(s *sandbox, closed []netip.AddrPort) {
			for _, address := range closed {
				if conn, err := s.dialAddress(address.Addr(), address.Port()); err == nil {
					conn.Close()
					t.Errorf("%s was connected to", address)
				}
			}
		}, ""},
		{"a listed host", func(s *sandbox, _ []netip.AddrPort) {
			if conn, err := s.dial("example.com", 443); err == nil {
				conn.Close()
				t.Error("a listed host was reached")
			}
		}, "it connected to example.com:443 before it was checked"},
	} {
		g := &gate{}
		ours, theirs, err := egress.Pair()
		if err != nil {
			t.Fatal(err)
		}
		network, err := egress.New(ours, &egress.Options{Gate: g, Any: true,
			Hosts: []egress.Host{{Name: "example.com", Port: 443}, {Name: "example.com", Port: 1}},
			Dial: func(ctx context.Context, n, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, n, server.Addr().String())
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer network.Close()
		s := &sandbox{t, inside(t, theirs), network, g}
		if address, code := s.resolve("other.example.com", dnsmessage.TypeA); address.IsValid() ||
			code != dnsmessage.RCodeNameError {
			t.Errorf("%s: a name that is not listed: got %v, %v", c.name, address, code)
		}
		c.attempt(s, network.Closed())
		if len(g.asked) > 0 || len(network.Refusals()) > 0 {
			t.Errorf("%s: the gate was asked %q, refused %q", c.name, g.asked, network.Refusals())
		}
		if err := network.Open(); fmt.Sprint(err) != cmp.Or(c.breach, "<nil>") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.breach)
		}
		if conn, err := s.dial("example.com", 443); (err == nil) != (c.breach == "") {
			t.Errorf("%s: a listed host after Open: got %v", c.name, err)
		} else if err == nil {
			conn.Close()
		}
	}
}

// fails connects to example.com, which must be refused for its address.
func fails(t *testing.T, s *sandbox, port string) {
	t.Helper()
	host, err := egress.ParseHost("example.com:" + port)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := s.dial(host.Name, host.Port); err == nil {
		conn.Close()
		t.Error("the connection was made")
	}
	s.refused("its address is not on the internet")
}

// Issue 30: labels of names carry nothing out: the host's resolver is asked about listed names only, once they are
// connected to. The same holds for server names of TLS, which must be the listed name.
func TestNamesCarryNothingOut(t *testing.T) {
	s, server := newResolvedSandbox(t, map[string][]answer{"example.com" + a: {{address: "127.0.0.1"}}},
		"example.com:443")
	for i := range 5 {
		for _, domain := range []string{"evil.com", "example.com"} {
			name := fmt.Sprintf("part-%d-of-the-secret.%s", i, domain)
			address, code := s.resolve(name, dnsmessage.TypeTXT)
			if address.IsValid() || code != dnsmessage.RCodeNameError {
				t.Errorf("got %v, %v", address, code)
			}
		}
	}
	fails(t, s, "443")
	server.mu.Lock()
	defer server.mu.Unlock()
	for _, name := range server.asked {
		if name != "example.com" {
			t.Errorf("the host's resolver was asked about %q", name)
		}
	}
}

// sink is a server that keeps what it gets and never answers.
type sink struct {
	net.Listener
	mu  sync.Mutex
	got bytes.Buffer
}

func newSink(t *testing.T) *sink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{Listener: listener}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.keep(conn)
		}
	}()
	return s
}

func (s *sink) keep(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 1<<16)
	for {
		size, err := conn.Read(buf)
		s.mu.Lock()
		s.got.Write(buf[:size])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Issue 30: the server name is that of the host in every ClientHello that a server could read, and the rest of a
// connection is TLS.
func TestEveryClientHelloNamesTheHost(t *testing.T) {
	server := newSink(t)
	good, evil := clientHello(t, "example.com"), clientHello(t, "evil.com")
	alert := "\x15\x03\x03\x00\x02\x01\x00"
	changeCipher, early := "\x14\x03\x03\x00\x01\x01", "\x17\x03\x03\x00\x10sixteen bytes 16"
	for name, c := range map[string]struct{ sent, refused string }{
		"a second one":                {good + evil, `the server name of TLS is "evil.com"`},
		"behind a change of ciphers":  {good + changeCipher + evil, `the server name of TLS is "evil.com"`},
		"behind early data":           {good + early + changeCipher + evil, `the server name of TLS is "evil.com"`},
		"behind an alert":             {good + alert + evil, `the server name of TLS is "evil.com"`},
		"in two records":              {good + fragmented(evil, 9), `the server name of TLS is "evil.com"`},
		"in small records":            {good + fragmented(evil, 3), "too short to be read"},
		"the first one in records":    {fragmented(evil, 3), `the server name of TLS is "evil.com"`},
		"plain text behind the first": {good + "GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n", "is not TLS"},
		"a giant record":              {good + "\x17\x03\x03\xff\xffevil", "is not TLS"},
		"encrypted":                   {encryptedHello(t, "example.com", "evil.com"), "ECH"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t, server.Addr().String(), egress.Limits{}, "example.com:443")
			conn, err := s.dial("example.com", port)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, c.sent) // the connection may end before everything was sent
			s.refused(c.refused)
		})
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if strings.Contains(server.got.String(), "evil") {
		t.Errorf("the host got %q", &server.got)
	}
}

// fragmented cuts the message of a record into records of size bytes.
func fragmented(hello string, size int) string {
	var b strings.Builder
	for rest := hello[5:]; rest != ""; {
		n := min(size, len(rest))
		fmt.Fprintf(&b, "\x16\x03\x01\x00%c%s", n, rest[:n])
		rest = rest[n:]
	}
	return b.String()
}

// encryptedHello returns a ClientHello for inner, with the server name outer outside of its encrypted part.
func encryptedHello(t *testing.T, outer, inner string) string {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var contents []byte
	contents = append(contents, 1, 0, 0x20) // configuration 1, DHKEM(X25519, HKDF-SHA256)
	contents = binary.BigEndian.AppendUint16(contents, 32)
	contents = append(contents, key.PublicKey().Bytes()...)
	contents = append(contents, 0, 4, 0, 1, 0, 1, 32, byte(len(outer))) // HKDF-SHA256 and AES-128-GCM
	contents = append(append(contents, outer...), 0, 0)
	config := binary.BigEndian.AppendUint16([]byte{0xfe, 0x0d}, uint16(len(contents)))
	list := binary.BigEndian.AppendUint16(nil, uint16(len(config)+len(contents)))
	list = append(append(list, config...), contents...)
	return firstRecord(t, &tls.Config{ServerName: inner, EncryptedClientHelloConfigList: list,
		MinVersion: tls.VersionTLS13})
}

// Issue 30: a TLS connection of the older protocol with a session that is resumed, and one with a second ClientHello of
// the same name, are carried.
func TestOlderTLS(t *testing.T) {
	for _, c := range []*tls.Config{
		{MaxVersion: tls.VersionTLS12}, {CurvePreferences: []tls.CurveID{tls.CurveP521}}, // the latter asks again
	} {
		secure := httptest.NewUnstartedServer(http.HandlerFunc(hello))
		secure.TLS = c
		secure.StartTLS()
		s := newSandbox(t, secure.Listener.Addr().String(), egress.Limits{Open: 8}, "example.com:443")
		client := s.client(secure, "example.com")
		transport := client.Transport.(*http.Transport)
		transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		transport.DisableKeepAlives = true
		for range 20 { // more than may be open: each one ends
			response, err := client.Post("https://example.com/", "", strings.NewReader(strings.Repeat("x", 100<<10)))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil || !strings.HasPrefix(string(body), "hello example.com") {
				t.Fatalf("got %.100q, %v", body, err)
			}
			response.Body.Close()
		}
		secure.Close()
	}
}

// Issue 30: a redirect gains nothing: where it leads is another connection.
func TestRedirects(t *testing.T) {
	var to string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to, http.StatusFound)
	}))
	defer server.Close()
	for target, refused := range map[string]string{
		"http://169.254.169.254/latest/meta-data/": "connect by name",
		"http://metadata.google.internal/":         `"metadata.google.internal" is not in the network list`,
		"http://example.com:22/":                   `"example.com:22" is not in the network list`,
		"http://127.0.0.1/":                        "connect by name",
	} {
		to = target
		s := newSandbox(t, server.Listener.Addr().String(), egress.Limits{}, "example.com:80")
		client := s.client(server, "")
		client.Transport.(*http.Transport).DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
			if ap, err := netip.ParseAddrPort(address); err == nil {
				if ap.Addr().IsLoopback() { // the sandbox's own
					ap = netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), ap.Port())
				}
				return s.dialAddress(ap.Addr(), ap.Port())
			}
			host, err := egress.ParseHost(address)
			if err != nil {
				return nil, err
			}
			return s.dial(host.Name, host.Port)
		}
		if response, err := client.Get("http://example.com/"); err == nil {
			response.Body.Close()
			t.Errorf("%s was reached", target)
		}
		s.refused(refused)
	}
}

// Issue 30: one connection, two names of one server: a client that coalesces them (RFC 9113, section 9.1.1) sends the
// second name's request on a connection that was decided for the first. In clear it is refused. In TLS, the server name
// of a new connection is checked; docs/egress.md states that requests inside of one are not seen.
func TestCoalescing(t *testing.T) {
	server := newSink(t)
	s := newSandbox(t, server.Addr().String(), egress.Limits{}, "a.example.com:443", "b.example.com:443")
	s.gate.refuse = []string{"b.example.com:443"}
	for sent, refused := range map[string]string{
		"GET / HTTP/1.1\r\nHost: b.example.com\r\n\r\n": `the Host of a request is "b.example.com"`,
		clientHello(t, "b.example.com"):                 `the server name of TLS is "b.example.com"`,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":              "Host of a request",
	} {
		conn, err := s.dial("a.example.com", 443)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, sent)
		s.refused(refused)
		conn.Close()
	}
	if conn, err := s.dial("b.example.com", 443); err == nil {
		conn.Close()
		t.Error("a host that the gate refuses was reached")
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if strings.Contains(server.got.String(), "b.example.com") {
		t.Errorf("the host got %q", &server.got)
	}
}
