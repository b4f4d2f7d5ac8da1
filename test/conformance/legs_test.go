package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/test/conformance/passthrough"
)

// listen serves a handler on the loopback interface and returns its address.
func listen(t *testing.T, handler http.Handler) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	t.Cleanup(func() {
		h.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving: got %v, want %v", err, http.ErrServerClosed)
		}
	})
	return "http://" + l.Addr().String() + "/mcp"
}

// Airlock's own face, with the everything-server of go-sdk behind all of Airlock.
func TestFace(t *testing.T) {
	suites(t)
	everything := build(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "airlock.yaml")
			text := fmt.Sprintf("mcpServers: {everything: {url: %q}}\naudit: {path: audit.jsonl}\n",
				everythingOverHTTP(t, everything, revision == "2026-07-28"))
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			leg{name: "face", role: "server", against: []string{"--url", overHTTP(t, path)}, revision: revision}.run(t)
		})
	}
}

// The suite has no sign-in scenarios for servers, as README.md states. A version that adds
// some must be run against airlock serve.
func TestTheSuiteHasNoSignInForServers(t *testing.T) {
	dir, node := suites(t)
	out, err := exec.CommandContext(t.Context(), node,
		filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"), "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), "Server scenarios")
	servers, clients, found := strings.Cut(rest, "Client scenarios")
	if !found || !strings.Contains(servers, "- ping ") || !strings.Contains(clients, "- auth/") {
		t.Fatalf("the list is not as expected:\n%s", out)
	}
	for line := range strings.Lines(servers) {
		if strings.Contains(line, "auth") {
			t.Errorf("the suite can check how servers take tokens: %s", line)
		}
	}
}

// Airlock's upstream client in front of the everything-server of go-sdk, which has
// all that the suite asks of a server: over HTTP with sessions and without them, and
// on stdin and stdout.
func TestPassthrough(t *testing.T) {
	t.Parallel()
	suites(t)
	everything := build(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	legacy := build(t, "github.com/airlock-mcp/airlock/test/conformance/stdiolegacy")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			stateless := revision == "2026-07-28"
			through := func(t *testing.T, name string, config upstream.Config) {
				handler := passthrough.New(config, stateless)
				url := listen(t, handler)
				t.Cleanup(func() {
					if err := handler.Close(); err != nil {
						t.Error(err)
					}
				})
				leg{name: name, role: "server", against: []string{"--url", url}, revision: revision}.run(t)
			}
			t.Run("http", func(t *testing.T) {
				t.Parallel()
				through(t, "passthrough-http", upstream.Config{ID: "everything",
					URL: everythingOverHTTP(t, everything, stateless)})
			})
			t.Run("stdio", func(t *testing.T) {
				t.Parallel()
				config := upstream.Config{ID: "everything", Command: everything}
				if !stateless {
					config.Command, config.Args = legacy, []string{everything}
				}
				through(t, "passthrough-stdio", config)
			})
		})
	}
}

// everythingOverHTTP starts the everything-server at a new address.
func everythingOverHTTP(t *testing.T, program string, stateless bool) string {
	t.Helper()
	address := testenv.ReservedAddress(t)
	background(t, program, "-http", address, fmt.Sprintf("-stateless=%t", stateless))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address); err == nil {
			conn.Close()
			return "http://" + address + "/"
		}
		if ctx.Err() != nil {
			t.Fatalf("the everything-server does not listen on %s", address)
		}
	}
}

// Airlock's upstream client as the client that the suite tests.
func TestUpstreamClient(t *testing.T) {
	t.Parallel()
	suites(t)
	client := build(t, "github.com/airlock-mcp/airlock/test/conformance/upstreamclient")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			leg{name: "upstream-client", role: "client", against: []string{"--command", client},
				revision: revision}.run(t)
		})
	}
}
