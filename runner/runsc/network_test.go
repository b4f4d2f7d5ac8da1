package runsc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
)

// permit is a gate that permits everything that has a name.
type permit struct {
	mu    sync.Mutex
	asked []string
}

func (p *permit) Connect(_ context.Context, host egress.Host) (func(egress.Outcome), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, host.String())
	return func(egress.Outcome) {}, nil
}

// device returns the network of a sandbox whose hosts are all at target.
func device(t *testing.T, target string, hosts ...egress.Host) (*runner.Network, *egress.Network, *permit) {
	t.Helper()
	ours, theirs, err := egress.Pair()
	if err != nil {
		t.Fatal(err)
	}
	gate := &permit{}
	network, err := egress.New(ours, &egress.Options{Hosts: hosts, Gate: gate,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, target)
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
		theirs.Close()
	})
	return &runner.Network{Device: theirs, Closed: network.Closed(), Open: network.Open}, network, gate
}

// networked returns a runner, and a directory to mount as runner.TrustDir.
func networked(t *testing.T, env testenv.Env, pool int) (r *runner.Runner, trust string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "airlock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r, err = runner.New(newDriver(t, env), &runner.Options{Logger: logger(t), StateDir: filepath.Join(dir, "s"),
		Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.WithoutCancel(t.Context())) })
	trust = filepath.Join(dir, "trust")
	if err := os.Mkdir(trust, 0o755); err != nil {
		t.Fatal(err)
	}
	resolver := []byte("nameserver " + egress.Gateway.String() + "\n")
	if err := os.WriteFile(filepath.Join(trust, "resolv.conf"), resolver, 0o644); err != nil {
		t.Fatal(err)
	}
	return r, trust
}

// Issue 30: code reaches a named host over TLS and HTTP with libraries that know nothing of a proxy, and nothing else.
// Sandboxes that continue from a saved one, which had no network, get the network too.
func TestCodeReachesNamedHosts(t *testing.T) {
	env := testenv.Sandbox(t)
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			fmt.Fprint(w, "hello "+r.Host)
		}
	})
	secure, plain := httptest.NewTLSServer(hello), httptest.NewServer(hello)
	defer secure.Close()
	defer plain.Close()
	programs := map[string]struct{ http, https, other string }{
		"python": {
			http: `
import urllib.request
result = [urllib.request.urlopen("http://api.example.com/", timeout=60).read().decode()]
`,
			https: `
import ssl, urllib.request
large = urllib.request.Request("https://api.example.com/", data=b"x" * 5_000_000)
result = [urllib.request.urlopen(large, context=ssl._create_unverified_context(), timeout=60).read().decode()]
`,
			other: `
import ctypes, socket, os, struct
result = []
def attempt(name, f):
    try:
        result.append([name, repr(f())])
    except BaseException as e:
        pass
def connect(family, address, kind=socket.SOCK_STREAM, proto=0):
    s = socket.socket(family, kind, proto)
    s.settimeout(3)
    s.connect(address)
    if kind != socket.SOCK_STREAM:
        s.send(b"\x00" * 64)
        return s.recv(10)
    return "connected"
for host in ["1.1.1.1", "169.254.169.254", "10.0.0.1", "192.168.1.1", "198.18.0.1", "198.18.0.3", "198.18.255.255",
             "2130706433", "0177.0.0.1", "0x7f.1", "evil.example.com", "metadata.google.internal", "localhost.example.com"]:
    for port in (80, 443):
        attempt(host, lambda: connect(socket.AF_INET, (host, port)))
    attempt(host + " udp", lambda: connect(socket.AF_INET, (host, 443), socket.SOCK_DGRAM))
attempt("another port", lambda: connect(socket.AF_INET, ("api.example.com", 8080)))
attempt("quic", lambda: connect(socket.AF_INET, ("api.example.com", 443), socket.SOCK_DGRAM))
for host in ["::1", "fe80::1", "fe80::1%eth0", "::ffff:1.1.1.1", "64:ff9b::101:101", "2606:4700:4700::1111"]:
    attempt(host, lambda: connect(socket.AF_INET6, (host, 80)))
attempt("raw", lambda: connect(socket.AF_INET, ("198.18.0.1", 0), socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("icmp", lambda: connect(socket.AF_INET, ("198.18.0.1", 0), socket.SOCK_DGRAM, socket.IPPROTO_ICMP))
attempt("packet", lambda: connect(socket.AF_PACKET, ("eth0", 0), socket.SOCK_RAW))
for label in range(20):
    attempt("dns", lambda: socket.getaddrinfo(f"secret{label}.example.com", 80))
attempt("redirect", lambda: __import__("urllib.request").request.urlopen("http://api.example.com/redirect", timeout=5).read())
result.append(["end", ""])
`,
		},
		"node": {
			http: `globalThis.result = [await (await fetch("http://api.example.com/")).text()];`,
			https: `
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
globalThis.result = [await (await fetch("https://api.example.com/", { method: "POST", body: "x".repeat(5e6) })).text()];
`,
		},
	}
	r, trust := networked(t, env, 1)
	want := []string{`"hello api.example.com"`}
	for language, p := range programs {
		request := runner.Request{Image: image(t, env.Home, language), Limits: runner.DefaultLimits(),
			Mounts: []runner.Mount{{Source: trust, Target: runner.TrustDir}}}
		for name, c := range map[string]struct {
			code, target string
			port         uint16
		}{
			"HTTP":  {p.http, plain.Listener.Addr().String(), 80},
			"HTTPS": {p.https, secure.Listener.Addr().String(), 443},
		} {
			t.Run(language+" "+name, func(t *testing.T) {
				for _, start := range []string{"fresh", "saved"} {
					theirs, network, gate := device(t, c.target, egress.Host{Name: "api.example.com", Port: c.port})
					with := request
					with.Network = theirs
					var got []string
					for _, value := range runRequest(t, r, with, c.code) {
						got = append(got, string(value))
					}
					if !slices.Equal(got, want) || len(gate.asked) == 0 {
						t.Errorf("%s: got %q, want %q; asked %q, refused %q", start, got, want, gate.asked,
							network.Refusals())
					}
					// The next one continues from a sandbox that is saved by then.
					runRequest(t, r, request, programCode[language])
				}
			})
		}
		if p.other == "" {
			continue
		}
		t.Run(language+" reaches nothing else", func(t *testing.T) {
			theirs, network, gate := device(t, plain.Listener.Addr().String(),
				egress.Host{Name: "api.example.com", Port: 80})
			with := request
			with.Network = theirs
			for _, value := range runRequest(t, r, with, p.other) {
				if got := string(value); !strings.Contains(got, `"end"`) {
					t.Errorf("reached: %s", got)
				}
			}
			for _, asked := range gate.asked {
				if asked != "api.example.com:80" {
					t.Errorf("the gate was asked about %q", asked)
				}
			}
			if len(network.Refusals()) == 0 {
				t.Error("no refusal is reported")
			}
		})
	}
}

// Issue 30: a sandbox that reaches anything before it gets code is closed, and no other sandbox is used: programs and
// guests of both languages try it, those too that continue from a saved sandbox.
func TestANetworkIsProbedFromInside(t *testing.T) {
	env := testenv.Sandbox(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for language, code := range programCode {
		for _, way := range []string{"fresh", "saved", "program"} {
			t.Run(language+" "+way, func(t *testing.T) {
				pool := 0
				if way == "saved" {
					pool = 1
				}
				r, trust := networked(t, env, pool)
				request := runner.Request{Image: image(t, env.Home, language), Limits: runner.DefaultLimits(),
					Mounts: []runner.Mount{{Source: trust, Target: runner.TrustDir}}}
				if way == "saved" {
					runRequest(t, r, request, code)
				}
				device, network, gate := device(t, listener.Addr().String(), egress.Host{Name: "api.example.com",
					Port: 443})
				// A broken network: it is open before the sandbox was checked, and leads somewhere.
				if err := network.Open(); err != nil {
					t.Fatal(err)
				}
				device.Closed = []netip.AddrPort{netip.MustParseAddrPort("11.0.0.1:443")}
				request.Network = device
				start := func() error {
					if way == "program" {
						p, err := r.StartProgram(t.Context(), request)
						if err == nil {
							return p.Close()
						}
						return err
					}
					s, err := r.Acquire(t.Context(), request)
					if err == nil {
						return s.Close()
					}
					return err
				}
				const want = "must not reach tcp/11.0.0.1/443: the attempt ended with " +
					`"tcp/11.0.0.1/443 REACHED"`
				if err := start(); err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("got %v, want %q", err, want)
				}
				if len(gate.asked) == 0 {
					t.Error("nothing was tried")
				}
				request.Network = nil
				if err := start(); err == nil || !strings.Contains(err.Error(), "no sandbox is used") {
					t.Errorf("the next sandbox: got %v, want none", err)
				}
			})
		}
	}
}

// programCode is a program without a network that ends at once.
var programCode = map[string]string{"python": "result = [1]", "node": "globalThis.result = [1]"}
