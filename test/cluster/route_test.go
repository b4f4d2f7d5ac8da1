package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const askingRules = `permit(principal, action, resource) when { resource.risk == "read" };
@approve("owner") permit(principal, action == Action::"alpha/change", resource);
`

// newRoutedGroup returns a cluster whose nodes have a server with a tool for which people are asked.
func newRoutedGroup(t *testing.T) *group {
	t.Helper()
	g := newGroup(t)
	server := mcp.NewServer(&mcp.Implementation{Name: "alpha", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "change", Description: "Change something."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, map[string]any, error) {
			return nil, map[string]any{"changed": true}, nil
		})
	alpha := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(alpha.Close)
	rules := filepath.Join(t.TempDir(), "rules.cedar")
	if err := os.WriteFile(rules, []byte(askingRules), 0o600); err != nil {
		t.Fatal(err)
	}
	g.more = fmt.Sprintf("mcpServers: {alpha: {url: %q}}\nservers: {alpha: {trustAnnotations: true}}\npolicies: [%q]\n"+
		"serve: {trustedProxies: [127.0.0.1]}\n", alpha.URL, rules)
	return g
}

// rotating sends each request to the next node, as a load balancer without affinity does.
type rotating struct {
	nodes []*node
	token string

	mu   sync.Mutex // guards the fields below
	sent []string   // methods of HTTP
}

func (b *rotating) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	n := b.nodes[len(b.sent)%len(b.nodes)]
	b.sent = append(b.sent, r.Method)
	b.mu.Unlock()
	to, err := url.Parse(n.url)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = to.Host, to.Host
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func (b *rotating) methods() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.sent, " ")
}

// host connects a host of one revision whose requests go to the nodes in turn. Its person approves every call.
func (b *rotating) host(t *testing.T, path, revision string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve this call"}}, nil
		}})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: b.nodes[0].url + path,
		HTTPClient: &http.Client{Transport: b}}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// call returns the answer of a tool as JSON with its content.
func call(t *testing.T, s *mcp.ClientSession, tool string, arguments any) string {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func find(t *testing.T, in, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(in)
	if found == nil {
		t.Fatalf("%s has no %s", in, pattern)
	}
	return found[1]
}

const runID = `"run_id":"([^"]+)"`

var revisions = []string{"2025-11-25", "2026-07-28"}

// issue 28: a load balancer needs no affinity. Each request of a conversation goes to another node.
func TestEachRequestGoesToAnotherNode(t *testing.T) {
	g := newRoutedGroup(t)
	nodes := []*node{g.node("a").serve(), g.node("b").serve(), g.node("c").serve()}
	_, token := nodes[0].token("run,approve")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) { converse(t, &rotating{nodes: nodes, token: token}, revision) })
	}
}

func converse(t *testing.T, b *rotating, revision string) {
	host := b.host(t, "/mcp", revision)
	python := func(code string, background bool) string {
		return call(t, host, "run_code", map[string]any{"language": "python", "code": code, "background": background})
	}
	for range b.nodes { // so that each node begins one
		running := find(t, python("import time\ntime.sleep(600)", true), runID)
		for range b.nodes {
			if got := call(t, host, "get_run", map[string]any{"run_id": running}); strings.Contains(got, "unknown") {
				t.Fatalf("a run that goes on: %s", got)
			}
		}
		if got := call(t, host, "cancel_run", map[string]any{"run_id": running}); !strings.Contains(got,
			`"cancelled":true`) {
			t.Errorf("cancelling a run: %s", got)
		}
		made := find(t, python("client.attach(b'a,b', 'text/csv', 'table.csv')\nresult = 1", false), runID)
		file, err := host.ReadResource(t.Context(),
			&mcp.ReadResourceParams{URI: "airlock://runs/" + made + "/table.csv"})
		if err != nil || file.Contents[0].Text != "a,b" {
			t.Errorf("a file of a run: %+v, %v", file, err)
		}
		if got := python("from servers.alpha import change\nresult = await change({})", false); !strings.Contains(got,
			`changed`) || strings.Contains(got, `"ok":false`) {
			t.Errorf("a call that the person of the host approves: %s", got)
		}
	}
	unknown := call(t, host, "get_run", map[string]any{"run_id": "run_" + strings.Repeat("0", 32)})
	if !strings.Contains(unknown, "There is no such run") {
		t.Errorf("an unknown run: %s", unknown)
	}
	kernel := b.host(t, "/kernel/mcp", revision)
	for range b.nodes {
		if _, err := kernel.ListTools(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []*mcp.ClientSession{host, kernel} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if sent := b.methods(); revision == revisions[0] &&
		!(strings.Contains(sent, "GET") && strings.Contains(sent, "DELETE")) {
		t.Errorf("the host with a session sent %s", sent)
	}
}

func TestJobsOfTheGatewayAtEachNode(t *testing.T) {
	g := newGroup(t)
	nodes := []*node{g.node("a").serve(), g.node("b").serve()}
	_, token := nodes[0].token("run")
	b := &rotating{nodes: nodes, token: token}
	host := b.host(t, "/gateway/mcp", revisions[1])
	for range nodes {
		begun := call(t, host, "execute_python_code", map[string]any{"code": "print(6 * 7)", "background": true})
		job := find(t, begun, `request ([0-9a-f-]{36})`)
		for range nodes {
			status := call(t, host, "verification_status", map[string]any{"job_id": job})
			if strings.Contains(status, "not found") {
				t.Errorf("%s\n%s", begun, status)
			}
		}
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
}

// The sessions of a node that was killed are unknown, so that clients open new ones. A request for one of its runs can
// be sent again.
func TestTheOwnerIsKilled(t *testing.T) {
	g := newGroup(t)
	a, b := g.node("a").serve(), g.node("b").serve()
	_, token := a.token("run")
	session := (&rotating{nodes: []*node{a}, token: token}).host(t, "/mcp", revisions[0])
	id := session.ID()
	begun := call(t, (&rotating{nodes: []*node{a}, token: token}).host(t, "/mcp", revisions[1]), "run_code",
		map[string]any{"language": "python", "code": "import time\ntime.sleep(600)", "background": true})
	run := find(t, begun, runID)
	ping := func(session string) (int, map[string]any) {
		r := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"}
		return b.post("/mcp", "Authorization", "Bearer "+token, r, "Mcp-Session-Id", session,
			"Mcp-Protocol-Version", revisions[0])
	}
	if status, answer := ping(id); status != http.StatusOK {
		t.Fatalf("a session of node a at node b: %d %v", status, answer)
	}
	if status, _ := ping("x" + id); status != http.StatusNotFound {
		t.Errorf("a forged session: %d", status)
	}
	if err := a.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.process.Wait() // it was killed
	status, answer := ping(id)
	if status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(answer), "send the request again") {
		t.Errorf("a session of a node that has just died: %d %v", status, answer)
	}
	for t.Context().Err() == nil && status == http.StatusServiceUnavailable { // until the lease is 10 s old
		status, answer = ping(id)
	}
	if status != http.StatusNotFound {
		t.Errorf("a session of a node that is dead: %d %v", status, answer)
	}
	host := (&rotating{nodes: []*node{b}, token: token}).host(t, "/mcp", revisions[1])
	_, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_run", Arguments: map[string]any{"run_id": run}})
	if err == nil || !strings.Contains(err.Error(), "the node of the cluster that has this does not answer") {
		t.Errorf("a run of a node that is dead: %v", err)
	}
}
