// Package cluster tests several real `airlock serve` that share a PostgreSQL database (#28). Its clients and its load
// balancer also work for test/bench.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Site is the host name by which clients reach a cluster behind a load balancer.
const Site = "airlock.example"

// BehindBalancer returns the settings "serve" of a node behind StartBalancer.
func BehindBalancer() map[string]any {
	return map[string]any{"proxy": true, "hosts": []string{Site}, "trustedProxies": []string{"127.0.0.1"},
		"drainTime": "30s"}
}

// StartBalancer starts nginx in front of nodes, with the configuration of docs/serving.md and docs/cluster.md, without
// TLS. root is the directory of the repository, dir one for nginx. The client reaches Site through nginx. stop ends
// nginx and returns what it has printed.
func StartBalancer(root, dir string, nodes []string) (client *http.Client, stop func() string, err error) {
	server, err := block(root, "serving.md")
	if err != nil {
		return nil, nil, err
	}
	upstream, err := block(root, "cluster.md")
	if err != nil {
		return nil, nil, err
	}
	address, release, err := testenv.ReserveAddress()
	if err != nil {
		return nil, nil, err
	}
	server = strings.NewReplacer("listen 443 ssl http2", "listen "+address, "http://127.0.0.1:7823",
		"http://airlock").Replace(server)
	server = regexp.MustCompile(`(?m)^\s*ssl_.*\n`).ReplaceAllString(server, "")
	example := regexp.MustCompile(`(?m)^\s*server \S+( .*;)\n`)
	options := example.FindStringSubmatch(upstream)
	if options == nil {
		release()
		return nil, nil, errors.New("docs/cluster.md has no server of a load balancer")
	}
	var servers strings.Builder
	for _, node := range nodes {
		fmt.Fprintf(&servers, "server %s%s\n", node, options[1])
	}
	upstream = strings.TrimSuffix(strings.TrimSpace(example.ReplaceAllString(upstream, "")), "}") +
		servers.String() + "}\n"
	end, err := testenv.StartNginx(dir, address, upstream+server)
	if err != nil {
		release()
		return nil, nil, err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}}
	return &http.Client{Transport: transport}, func() string {
		transport.CloseIdleConnections()
		defer release()
		return end()
	}, nil
}

// block returns the configuration of nginx in a page.
func block(root, page string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(text), "```nginx\n")
	inside, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		return "", fmt.Errorf("docs/%s has no configuration of nginx", page)
	}
	return inside, nil
}

// Clients send requests until Stop, while the nodes are replaced. They count what was answered and note what failed.
// Only HTTP and Token are set by the caller.
type Clients struct {
	HTTP  *http.Client // sends requests for Site to a node
	Token string       // of a caller that may run programs

	Runs, Sessions, Acts atomic.Int64 // programs that have run, sessions that were opened, actions that were approved

	stopped  atomic.Bool
	mu       sync.Mutex // guards failures
	failures []error
}

// Stop has the clients return when their last requests are answered.
func (c *Clients) Stop() { c.stopped.Store(true) }

// Failures returns the errors of the requests that failed.
func (c *Clients) Failures() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures
}

func (c *Clients) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, fmt.Errorf(format, args...))
}

// RoundTrip sends a request with the token.
func (c *Clients) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.Token)
	return c.HTTP.Transport.RoundTrip(r)
}

// Connect opens a session of a revision of MCP.
func (c *Clients) Connect(ctx context.Context, revision string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "http://" + Site + "/mcp",
		HTTPClient: &http.Client{Transport: c}}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
}

// Run runs programs one after the other. It opens another session when one is unknown, as hosts do.
func (c *Clients) Run(ctx context.Context, revision, code string) {
	var host *mcp.ClientSession
	for !c.stopped.Load() && ctx.Err() == nil {
		if host == nil {
			opened, err := c.Connect(ctx, revision)
			if errors.Is(err, mcp.ErrSessionMissing) { // its node has ended before the second message
				continue
			}
			if err != nil {
				c.fail("%s: opening a session: %w", revision, err)
				continue
			}
			host = opened
			c.Sessions.Add(1)
		}
		res, err := host.CallTool(ctx, &mcp.CallToolParams{Name: "run_code",
			Arguments: map[string]any{"language": "python", "code": code}})
		switch {
		case errors.Is(err, mcp.ErrSessionMissing):
			host = nil
		case err != nil:
			c.fail("%s: %w", revision, err)
			host = nil
		case res.IsError:
			c.fail("%s: %+v", revision, res.Content[0])
		default:
			c.Runs.Add(1)
		}
	}
	if host != nil {
		_ = host.Close() // its node may have ended
	}
}

// Act announces actions of an agent one after the other. name distinguishes its conversations from those of others.
func (c *Clients) Act(ctx context.Context, agent, token, name string) {
	for n := 0; !c.stopped.Load() && ctx.Err() == nil; n++ {
		if err := c.announce(ctx, agent, token, fmt.Sprint(name, n)); err != nil {
			c.fail("an action: %w", err)
			continue
		}
		c.Acts.Add(1)
	}
}

func (c *Clients) announce(ctx context.Context, agent, token, conversation string) error {
	body, err := json.Marshal(map[string]any{"action": map[string]any{"type": "calculate", "query": conversation},
		"context": map[string]any{"conversation_id": conversation, "step_number": 1}})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+Site+"/v1/agents/"+agent+"/actions",
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("X-Agent-Token", token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var decided struct{ Decision string }
	err = json.NewDecoder(answer.Body).Decode(&decided)
	if answer.StatusCode != http.StatusOK || decided.Decision != "APPROVED" {
		return fmt.Errorf("HTTP %d, decision %q, %v", answer.StatusCode, decided.Decision, err)
	}
	return nil
}
