// Package rebinding has names resolve to one address when they are checked and to another when they are used, for
// everything in Airlock that connects to other machines (issue 23).
package rebinding

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/airlock-mcp/airlock/admission/redislimit"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/registry"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog/embedding"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// nameServer answers each question with the next of its addresses, and with the last one from then on.
type nameServer struct {
	addresses []netip.Addr
	questions atomic.Int32
}

// resolveWith has this process resolve names with a name server of the test.
func resolveWith(t *testing.T, addresses ...string) *nameServer {
	t.Helper()
	s := &nameServer{}
	for _, address := range addresses {
		s.addresses = append(s.addresses, netip.MustParseAddr(address))
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(conn)
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		conn.Close()
		<-served
	})
	return s
}

func (s *nameServer) serve(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var message dnsmessage.Message
		if message.Unpack(buffer[:n]) != nil || len(message.Questions) != 1 {
			continue
		}
		question := message.Questions[0]
		message.Response, message.Authoritative, message.Additionals = true, true, nil
		if question.Type == dnsmessage.TypeA {
			at := min(int(s.questions.Add(1))-1, len(s.addresses)-1)
			message.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class},
				Body:   &dnsmessage.AResource{A: s.addresses[at].As4()},
			}}
		}
		raw, err := message.Pack()
		if err != nil {
			continue
		}
		conn.WriteTo(raw, from) // a resolver that hears nothing asks again
	}
}

// victim is a service that only this machine reaches. It counts connections.
func victim(t *testing.T) (port string, connections *atomic.Int32) {
	t.Helper()
	connections = &atomic.Int32{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, connections
}

// An attacker answers the DNS questions for a host that the operator or a server has named, with the address of a
// service of this machine. Airlock must not connect to it.
func TestANameThatLeadsToThisMachine(t *testing.T) {
	mcpAt := func(url string) func(*testing.T) error {
		return func(t *testing.T) error {
			source, err := oauth.New(oauth.Config{ServerID: "s", URL: url}, nil)
			if err != nil {
				t.Fatal(err)
			}
			set, err := upstream.New(
				[]upstream.Config{{ID: "s", URL: url, Credentials: source, Met: source.Met(),
					StartTimeout: 5 * time.Second}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			set.Connect(t.Context())
			return set.Problem("s")
		}
	}
	port, connections := victim(t)
	for _, tc := range []struct {
		name    string
		connect func(t *testing.T) error
	}{
		{"MCP", mcpAt("http://rebound.test:" + port + "/mcp")},
		{"MCP with TLS", mcpAt("https://rebound.test:" + port + "/mcp")},
		{"sign-in", func(t *testing.T) error {
			source, err := oauth.New(oauth.Config{ServerID: "s", URL: "https://rebound.test:" + port + "/mcp"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = source.Login(t.Context(), nil, nil)
			return err
		}},
		{"sign-in at a configured issuer", func(t *testing.T) error {
			source, err := oauth.New(oauth.Config{ServerID: "s", URL: "https://rebound.test:" + port + "/mcp",
				Issuer: "https://rebound.test:" + port}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = source.Login(t.Context(), nil, nil)
			return err
		}},
		{"embeddings", func(t *testing.T) error {
			e, err := embedding.NewEndpoint(embedding.EndpointConfig{URL: "http://rebound.test:" + port, Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Vectors(t.Context(), []string{"a"})
			return err
		}},
		{"witness over HTTP", func(t *testing.T) error { return submit(t, "http://rebound.test:"+port, witnessKey()) }},
		{"witness over syslog", func(t *testing.T) error { return submit(t, "syslog+tcp://rebound.test:"+port, "") }},
		{"manifest of an agent", func(t *testing.T) error {
			_, err := iatp.Fetch(t.Context(), "https://rebound.test:"+port+"/x")
			return err
		}},
		{"Redis", func(t *testing.T) error {
			l, err := redislimit.Open(t.Context(), "redis://rebound.test:"+port, 1, time.Second)
			if err == nil {
				l.Close()
			}
			return err
		}},
		{"keys of an issuer", func(t *testing.T) error {
			issuer := auth.NewIssuer(config.Auth{Issuer: "http://rebound.test:" + port, Audience: "a",
				Types: []string{"JWT"}}, nil, nil)
			_, err := issuer.Authenticate(t.Context(), secret.New(unknownJWT()), "/mcp")
			return err
		}},
		{"registry", func(t *testing.T) error {
			c, err := registry.New("http://rebound.test:"+port, secret.Value{})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = c.Search(t.Context(), "files")
			return err
		}},
		{"webhook", func(t *testing.T) error { return announced(t, "http://rebound.test:"+port) }},
		{"export of the log over HTTP", func(t *testing.T) error { return sent(t, "http://rebound.test:"+port) }},
		{"export of the log over syslog",
			func(t *testing.T) error { return sent(t, "syslog+tcp://rebound.test:"+port) }},
		{"model", func(t *testing.T) error { return answered(t, "http://rebound.test:"+port) }},
		{"database of a cluster", func(t *testing.T) error {
			db, err := database.OpenPostgreSQL(t.Context(),
				secret.New("postgres://ann@rebound.test:"+port+"/db?sslmode=disable"), "state")
			if err == nil {
				db.Close()
			}
			return err
		}},
		{"sign-in of people", func(t *testing.T) error {
			provider := &oauth.OpenID{Issuer: "https://rebound.test:" + port, ClientID: "c",
				Redirect: "https://a.test/", Hold: func(string) {}, Now: time.Now}
			_, _, err := provider.Begin(t.Context())
			return err
		}},
		{"identity provider of a token exchange", func(t *testing.T) error {
			source, err := oauth.New(oauth.Config{ServerID: "s", URL: "https://files.test/mcp",
				Grant: oauth.TokenExchange, Provider: oauth.Provider{Issuer: "https://rebound.test:" + port,
					ClientID: "c", ClientSecret: secret.New("s")}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = source.Login(t.Context(), nil, nil)
			return err
		}},
		{"telemetry over HTTP",
			func(t *testing.T) error { return exported(t, "http/protobuf", "http://rebound.test:"+port) }},
		{"telemetry over gRPC", func(t *testing.T) error { return exported(t, "grpc", "http://rebound.test:"+port) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := resolveWith(t, "127.0.0.1")
			if err := tc.connect(t); err == nil {
				t.Error("got no error")
			}
			if names.questions.Load() == 0 {
				t.Error("the name was not resolved: this tries nothing")
			}
			if n := connections.Swap(0); n != 0 {
				t.Errorf("a service of this machine got %d connections", n)
			}
		})
	}
}

// ownAddress returns an address of this machine that other machines could reach.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		prefix, err := netip.ParsePrefix(address.String())
		if err == nil && prefix.Addr().Is4() && reach.Of(prefix.Addr()) < reach.Local {
			return prefix.Addr().String()
		}
	}
	t.Skip("this machine has no address but the loopback one")
	return ""
}

// A server of another machine names metadata on this one. When Airlock looks the server's name up again, to decide how
// near the metadata may be, the name leads to this machine (issue 23: that made the server one of this machine, and the
// metadata were read). Once it has answered from elsewhere, it cannot.
func TestMetadataOfAServerWhoseNameIsRebound(t *testing.T) {
	port, connections := victim(t)
	own := ownAddress(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://127.0.0.1:`+port+`/secret"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	listener, err := net.Listen("tcp", own+":0")
	if err != nil {
		t.Fatal(err)
	}
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	_, at, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, addresses := range map[string][]string{
		"it stays": {own}, "rebound after the first answer": {own, "127.0.0.1"},
		"rebound before it": {"127.0.0.1", own}, "and back": {own, "127.0.0.1", own},
	} {
		t.Run(name, func(t *testing.T) {
			names := resolveWith(t, addresses...)
			source, err := oauth.New(oauth.Config{ServerID: "s", URL: "http://rebound.test:" + at + "/mcp"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				set, err := upstream.New(
					[]upstream.Config{{ID: "s", URL: "http://rebound.test:" + at + "/mcp",
						Credentials: source.Unsigned(), Met: source.Met()}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				set.Connect(t.Context())
				if set.Problem("s") == nil {
					t.Error("a server that refuses everything was connected")
				}
				if _, err := source.Login(t.Context(), nil, nil); err == nil {
					t.Error("signed in")
				}
				set.Close()
			}
			if names.questions.Load() == 0 {
				t.Error("the name was not resolved: this tries nothing")
			}
			if n := connections.Swap(0); n != 0 {
				t.Errorf("a service of this machine got %d connections", n)
			}
		})
	}
}
