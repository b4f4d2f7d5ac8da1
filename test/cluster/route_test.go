package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
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
	g.callsTo(server)
	return g
}

// callsTo adds a server to the configuration of the nodes, with rules that ask a person about its changes.
func (g *group) callsTo(server *mcp.Server) {
	g.Helper()
	g.callsUnder(server, askingRules)
}

// callsUnder adds a server to the configuration of the nodes, with rules.
func (g *group) callsUnder(server *mcp.Server, text string) {
	g.Helper()
	alpha := httptest.NewUnstartedServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	if os.Getenv(inNetwork) != "" { // it is reached by other machines
		listener, err := net.Listen("tcp", bridgeOfTest+":0")
		if err != nil {
			g.Fatal(err)
		}
		alpha.Listener.Close()
		alpha.Listener = listener
	}
	alpha.Start()
	g.Cleanup(alpha.Close)
	rules := filepath.Join(g.TempDir(), "rules.cedar")
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
	g.more = fmt.Sprintf("mcpServers: {alpha: {url: %q}}\nservers: {alpha: {trustAnnotations: true}}\npolicies: [%q]\n"+
		"serve: {trustedProxies: [127.0.0.1]}\n", alpha.URL, rules)
}

// rotating sends each request to the next node, as a load balancer without affinity does.
type rotating struct {
	nodes []*node
	token string // empty: none is sent

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
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	if r.Header.Get("Origin") != "" {
		r.Header.Set("Origin", "http://"+to.Host)
	}
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
	var attached []string
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
		attached = append(attached, "airlock://runs/"+made+"/table.csv")
		if err != nil || file.Contents[0].Text != "a,b" {
			t.Errorf("a file of a run: %+v, %v", file, err)
		}
		if got := python("from servers.alpha import change\nresult = await change({})", false); !strings.Contains(got,
			`changed`) || strings.Contains(got, `"ok":false`) {
			t.Errorf("a call that the person of the host approves: %s", got)
		}
	}
	for i := range b.nodes { // each program finds the files of those before it
		python(fmt.Sprintf("open('/workspace/session/file-%d', 'w').close()", i), false)
		if got := python("import os\nresult = len(os.listdir('/workspace/session'))", false); !strings.Contains(got,
			fmt.Sprintf(`"data":%d,"ok":true`, i+1)) {
			t.Errorf("after %d programs with a file: %s", i+1, got)
		}
	}
	listed, err := host.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, uri := range attached {
		if !slices.ContainsFunc(listed.Resources, func(r *mcp.Resource) bool { return r.URI == uri }) {
			t.Errorf("resources/list lacks %s", uri)
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
	g.images = []string{"python", "verify"}
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
	_, token := a.token("run,audit")
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
	testenv.Await(t, "the lease is 10 s old", func() bool {
		status, answer = ping(id)
		return status != http.StatusServiceUnavailable
	})
	if status != http.StatusNotFound {
		t.Errorf("a session of a node that is dead: %d %v", status, answer)
	}
	host := (&rotating{nodes: []*node{b}, token: token}).host(t, "/mcp", revisions[1])
	_, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_run", Arguments: map[string]any{"run_id": run}})
	if err == nil || !strings.Contains(err.Error(), "the node of the cluster that has this does not answer") {
		t.Errorf("a run of a node that is dead: %v", err)
	}
	metrics := b.get("/metrics", token)
	for _, want := range []string{`airlock_node_up_ratio\{[^}]*airlock_node_name="a"[^}]*\} 0\n`,
		`airlock_node_lease_seconds\{[^}]*airlock_node_name="b"[^}]*\} 2[0-9]\n`,
		`airlock_node_forward_duration_seconds_count\{[^}]*airlock_node_name="a"[^}]*error_type="unreached"`} {
		if !regexp.MustCompile(want).MatchString(metrics) {
			t.Errorf("the metrics have no %s:\n%s", want, metrics)
		}
	}
}

// browser returns a browser of a person whose requests go to the nodes in turn.
func (b *rotating) browser(t *testing.T) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &person{b.nodes[0], &http.Client{Jar: jar, Transport: b}}
}

// cookie returns the cookie of the session of a browser.
func (p *person) cookie() *http.Cookie {
	at, err := url.Parse(p.node.url)
	if err != nil || len(p.web.Jar.Cookies(at)) != 1 {
		p.node.Fatalf("the cookies are %v (%v)", p.web.Jar.Cookies(at), err)
	}
	return p.web.Jar.Cookies(at)[0]
}

const (
	signInPage = "<title>Sign in"
	errAway    = "The node of the cluster that has this does not answer."
)

// issue 28: a browser needs no affinity, and shows the runs of all nodes.
func TestABrowserUsesEachNode(t *testing.T) {
	g := newGroup(t)
	nodes := []*node{g.node("a").serve(), g.node("b").serve(), g.node("c").serve()}
	_, token := nodes[0].token("run,approve,audit")
	var runs []string
	for _, n := range nodes {
		begun := call(t, (&rotating{nodes: []*node{n}, token: token}).host(t, "/mcp", revisions[1]), "run_code",
			map[string]any{"language": "python", "code": "import time\ntime.sleep(600)", "background": true})
		runs = append(runs, find(t, begun, runID))
	}
	b := &rotating{nodes: nodes}
	p := b.browser(t)
	p.send("/sign-in", url.Values{"token": {token}})
	cookie := p.cookie()
	for range nodes {
		if page := p.page("/questions"); !strings.Contains(page, "<title>Questions") {
			t.Fatalf("the questions: %s", page)
		}
	}
	for i, run := range runs {
		for range nodes {
			if page := p.page("/runs/" + run); !strings.Contains(page, "/runs/"+run+"/cancel") {
				t.Errorf("the run of node %d: %s", i, page)
			}
		}
	}
	links := regexp.MustCompile(`href="(/runs\?node=[^"]+)"`).FindAllStringSubmatch(p.page("/runs"), -1)
	if len(links) != len(nodes) {
		t.Fatalf("the page has links to the runs of %d nodes", len(links))
	}
	listed := ""
	for _, link := range links {
		listed += p.page(link[1])
	}
	for i, run := range runs {
		if !strings.Contains(listed, run) {
			t.Errorf("no node lists the run of node %d", i)
		}
		form := url.Values{"csrf": {find(t, p.page("/runs/"+run), `name="csrf" value="([^"]+)"`)}}
		if page := p.send("/runs/"+run+"/cancel", url.Values{"csrf": {"other"}}); !strings.Contains(page,
			"not of this session") {
			t.Errorf("a form of another session: %s", page)
		}
		p.send("/runs/"+run+"/cancel", form)
		testenv.Await(t, "the run has ended", func() bool { return !strings.Contains(p.page("/runs/"+run), "/cancel") })
	}
	p.send("/sign-out", url.Values{"csrf": {find(t, p.page("/runs"), `name="csrf" value="([^"]+)"`)}})
	for _, path := range []string{"/runs", "/runs/" + runs[0], "/runs/" + runs[1], "/runs/" + runs[2]} {
		for range nodes {
			if page := b.replay(t, path, cookie); !strings.Contains(page, signInPage) {
				t.Errorf("%s after the sign-out: %s", path, page)
			}
		}
	}
	signInByLink(t, b)
}

// signInByLink signs in with a link that one node has made.
func signInByLink(t *testing.T, b *rotating) {
	t.Helper()
	for _, n := range b.nodes {
		out, err := testenv.AtTerminal(t, n.command("console")).Output()
		if err != nil {
			t.Fatal(err)
		}
		p := b.browser(t)
		path := find(t, string(out), `(/link\?code=\S+)`)
		p.send(path, url.Values{"code": {strings.TrimPrefix(path, "/link?code=")}})
		for range b.nodes {
			if page := p.page("/runs"); !strings.Contains(page, "<title>Runs") {
				t.Errorf("the runs after a sign-in with a link: %s", page)
			}
		}
	}
}

// replay requests a page with a cookie.
func (b *rotating) replay(t *testing.T, path string, cookie *http.Cookie) string {
	t.Helper()
	p := b.browser(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.node.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(cookie)
	return p.do(r)
}

// A browser whose node has died signs in again. The runs of that node can be opened later.
func TestTheNodeOfABrowserIsKilled(t *testing.T) {
	g := newGroup(t)
	a, b := g.node("a").serve(), g.node("b").serve()
	_, token := a.token("run")
	begun := call(t, (&rotating{nodes: []*node{a}, token: token}).host(t, "/mcp", revisions[1]), "run_code",
		map[string]any{"language": "python", "code": "result = 1"})
	run := find(t, begun, runID)
	atA, atB := &rotating{nodes: []*node{a}}, &rotating{nodes: []*node{b}}
	first := atA.browser(t)
	first.send("/sign-in", url.Values{"token": {token}})
	cookie := first.cookie()
	second := atB.browser(t)
	second.send("/sign-in", url.Values{"token": {token}})
	if page := atB.replay(t, "/runs", cookie); !strings.Contains(page, "<title>Runs") {
		t.Errorf("the session of a at b: %s", page)
	}
	if err := a.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.process.Wait() // it was killed
	var page string
	testenv.Await(t, "the lease is 10 s old", func() bool {
		page = atB.replay(t, "/runs", cookie)
		return !strings.Contains(page, errAway)
	})
	if !strings.Contains(page, signInPage) {
		t.Errorf("the session of a node that is dead: %s", page)
	}
	if page := second.page("/runs/" + run); !strings.Contains(page, errAway) {
		t.Errorf("a run of a node that is dead: %s", page)
	}
	if page := second.page("/runs"); !strings.Contains(page, "a (does not answer)") {
		t.Errorf("the list of nodes: %s", page)
	}
}
