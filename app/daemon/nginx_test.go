package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// nginxServer returns the server of docs/serving.md.
func nginxServer(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "docs", "serving.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```nginx\n")
	text, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/serving.md has no server of nginx")
	}
	return text
}

// startNginx starts nginx with the server of docs/serving.md in front of an address. It returns
// the address of nginx.
func startNginx(t *testing.T, behind string) string {
	t.Helper()
	dir, address := t.TempDir(), testenv.ReservedAddress(t)
	certificate, key := pair(t, 7)
	for name, text := range map[string][]byte{"cert.pem": certificate, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := strings.NewReplacer("listen 443", "listen "+address, "http://127.0.0.1:7823", behind, "/etc/airlock/",
		dir+"/").Replace(nginxServer(t))
	stop, err := testenv.StartNginx(dir, address, server)
	if errors.Is(err, exec.ErrNotFound) && !testenv.WantsSandboxes() {
		t.Skip("needs nginx: run `make nginx`")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if said := stop(); t.Failed() {
			t.Logf("nginx: %s", said)
		}
	})
	return address
}

// over returns a client that reaches every host at one address, with TLS, by HTTP/2 or HTTP/1.1.
func over(t *testing.T, address, protocol string) *http.Transport {
	t.Helper()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		},
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // certificates are not under test
		ForceAttemptHTTP2: protocol == "HTTP/2.0",
	}
	if protocol != "HTTP/2.0" {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// tokenOver sends a token with each request.
type tokenOver struct {
	token string
	next  http.RoundTripper
}

func (o tokenOver) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+o.token)
	return o.next.RoundTrip(r)
}

// A reverse proxy on the same machine forwards requests over the loopback interface with the
// host name that clients use (issue 27: they were answered 403 "invalid Host header"). The same
// requests work with the daemon's own TLS.
func TestBehindNginx(t *testing.T) {
	testenv.Sandbox(t)
	dir := t.TempDir()
	certificate, key := pair(t, 8)
	for name, text := range map[string][]byte{"cert.pem": certificate, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const names = "hosts: [airlock.example], trustedProxies: [127.0.0.1]"
	for _, tc := range []struct {
		name, serve string
		nginx       bool
	}{
		{"nginx ends TLS", "serve: {proxy: true, " + names + "}\n", true},
		{"nginx in front of TLS", fmt.Sprintf("serve: {certificate: %q, key: %q, %s}\n", filepath.Join(dir, "cert.pem"),
			filepath.Join(dir, "key.pem"), names), true},
		{"TLS alone", fmt.Sprintf("serve: {certificate: %q, key: %q, %s}\n", filepath.Join(dir, "cert.pem"),
			filepath.Join(dir, "key.pem"), names), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, tc.serve)
			_, address, _ := strings.Cut(s.url, "://")
			if tc.nginx {
				address = startNginx(t, s.url)
			}
			token := s.token("ann", auth.ScopeRun, auth.ScopeAgents)
			person := s.token("ann", auth.ScopeApprove)
			for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
				signsIn(t, over(t, address, protocol), "https://airlock.example", person)
				signsIn(t, over(t, address, protocol), "https://airlock.example:8443", person)
				client := &http.Client{Transport: tokenOver{token, over(t, address, protocol)}}
				for _, path := range []string{"/mcp", kernelPath} {
					for _, revision := range revisions {
						usesFace(t, client, path, revision)
					}
				}
				for link, want := range map[string]int{
					"https://airlock.example/healthz":   http.StatusOK,
					"https://airlock.example/v1/agents": http.StatusOK, "https://airlock.example/": http.StatusOK,
					"https://evil.example/v1/agents":                    http.StatusForbidden,
					"https://evil.example/mcp":                          http.StatusForbidden,
					"https://airlock.example.evil.example" + kernelPath: http.StatusForbidden,
				} {
					res, err := client.Get(link)
					if err != nil {
						t.Fatalf("%s, %s: %v", protocol, link, err)
					}
					res.Body.Close()
					if res.StatusCode != want || res.Proto != protocol {
						t.Errorf("%s, %s: got HTTP %d over %s, want %d", protocol, link,
							res.StatusCode, res.Proto, want)
					}
				}
			}
		})
	}
}

// signsIn signs in to the console as a browser does. Issue 27: at another port than 443, the form was refused behind
// nginx, which did not forward the port.
func signsIn(t *testing.T, transport *http.Transport, site, token string) {
	t.Helper()
	form := strings.NewReader(url.Values{"token": {token}}.Encode())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, site+"/sign-in", form)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", site)
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusSeeOther {
		t.Errorf("signing in at %s: got HTTP %d, want 303", site, response.StatusCode)
	}
}

// usesFace connects a host, lists the tools, and sends a call with a large argument.
func usesFace(t *testing.T, client *http.Client, path, revision string) {
	t.Helper()
	host := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := host.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "https://airlock.example" + path,
		HTTPClient: client},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Errorf("%s, %s: %v", path, revision, err)
		return
	}
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) == 0 {
		t.Errorf("%s, %s: got the tools %v, %v", path, revision, list, err)
		return
	}
	large := string(bytes.Repeat([]byte("x"), 1<<20))
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: list.Tools[0].Name,
		Arguments: map[string]any{"query": large}}); err != nil && !strings.Contains(err.Error(), "argument") {
		t.Errorf("%s, %s: %v", path, revision, err)
	}
}
