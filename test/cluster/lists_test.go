package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// get returns the answer of /v1.
func (n *node) get(path, token string) string {
	n.Helper()
	status, text, err := n.tryGet(path, token)
	if err != nil || status != http.StatusOK {
		n.Errorf("%s: %d %s (%v)", path, status, text, err)
	}
	return text
}

// tryGet returns the status and the answer of GET with a token.
func (n *node) tryGet(path, token string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(n.Context(), http.MethodGet, n.url+path, nil)
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// plain is command for verbs without a flag for the configuration.
func (n *node) plain(args ...string) *exec.Cmd {
	cmd := n.group.command(args...)
	cmd.Env = append(cmd.Env, "AIRLOCK_HOME="+n.home, "AIRLOCK_DATABASE_URL="+n.address, "AIRLOCK_CONFIG="+n.file)
	return cmd
}

// said returns what a verb prints.
func (n *node) said(args ...string) string {
	n.Helper()
	cmd := testenv.AtTerminal(n.T, n.plain(args...))
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.Fatalf("airlock %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// issue 28: the console, /v1 and the command line list what all nodes have, and name a node that does not answer.
func TestOneListOfAllNodes(t *testing.T) {
	g := newRoutedGroup(t)
	nodes := []*node{g.node("a").serve(), g.node("b").serve(), g.node("c").serve()}
	_, token := nodes[0].token("run,approve,audit")
	_, other := nodes[0].token("run")
	var runs []string
	for _, n := range nodes {
		begun := call(t, (&rotating{nodes: []*node{n}, token: token}).host(t, "/mcp", revisions[1]), "run_code",
			map[string]any{"language": "python", "code": "# Title of " + n.url + "\nresult = 1"})
		runs = append(runs, find(t, begun, runID))
	}
	b := nodes[1]
	p := b.person(token)
	lists := map[string]func() string{
		"console, runs":         func() string { return p.page("/runs") },
		"console, runs in part": func() string { return p.page("/runs/now?state=ok") },
		"console, audit log":    func() string { return p.page("/audit?kind=run_start") },
		"/v1/runs":              func() string { return b.get("/v1/runs", token) },
		"/v1/records":           func() string { return b.get("/v1/records?kind=run_start", token) },
		"airlock runs list":     func() string { return b.said("runs", "list") },
		"airlock runs, JSON":    func() string { return b.said("runs", "list", "--json") },
	}
	servers := map[string]func() string{
		"console, servers":     func() string { return p.page("/servers") },
		"/v1/servers":          func() string { return b.get("/v1/servers", token) },
		"airlock servers list": func() string { return b.said("servers", "list") },
	}
	testenv.Await(t, "node b knows the node that has started last",
		func() bool { return strings.Count(servers["/v1/servers"](), "connected") == len(nodes) })
	for name, list := range lists {
		text := list()
		for i, run := range runs {
			if !strings.Contains(text, run) {
				t.Errorf("%s: the run of node %d is missing in %s", name, i, text)
			}
		}
		if strings.Contains(text, "not answer") {
			t.Errorf("%s: all nodes answer: %s", name, text)
		}
	}
	for name, list := range servers {
		if text := list(); strings.Count(text, "connected") != len(nodes) {
			t.Errorf("%s: the server of each node is connected: %s", name, text)
		}
	}
	if text := b.get("/v1/runs", other); !strings.Contains(text, `"runs":[`) {
		t.Errorf("the list of another token: %s", text)
	}
	pagesOf(t, b, token, runs)
	if err := nodes[2].process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = nodes[2].process.Wait() // it was killed
	for name, list := range lists {
		text := list()
		if !strings.Contains(text, runs[0]) || !strings.Contains(text, runs[1]) || !strings.Contains(text,
			"Node c does not answer") {
			t.Errorf("%s, when node c is dead: %s", name, text)
		}
	}
	for name, list := range servers {
		if text := list(); strings.Count(text, "connected") != 2 || !strings.Contains(text, "Node c does not answer") {
			t.Errorf("%s, when node c is dead: %s", name, text)
		}
	}
	for _, path := range []string{"/overview", "/runs/" + runs[0], "/runs/" + runs[1]} {
		if page := p.page(path); !strings.Contains(page, runs[0]) && !strings.Contains(page, runs[1]) &&
			!strings.Contains(page, "Node c does not answer") {
			t.Errorf("%s, when node c is dead: %s", path, page)
		}
	}
	testenv.Await(t, "the lease of node c is 10 s old",
		func() bool { return strings.Contains(p.page("/questions"), "Node c does not answer") })
}

// pagesOf reads the list of runs one by one.
func pagesOf(t *testing.T, n *node, token string, runs []string) {
	t.Helper()
	for _, list := range []string{"/v1/runs?limit=1", "/v1/records?limit=1&kind=run_start"} {
		seen, path := "", list
		for range runs {
			text := n.get(path, token)
			seen += text
			if next := strings.Split(text, `"next":"`); len(next) == 2 {
				place, _, _ := strings.Cut(next[1], `"`)
				path = list + "&before=" + url.QueryEscape(place)
			}
		}
		for _, run := range runs {
			if strings.Count(seen, `"run_id":"`+run) != 1 {
				t.Errorf("%s: run %s is not once in %s", list, run, seen)
			}
		}
	}
}

// issue 28: a question is answered once, also by the command line of another node.
func TestTheCommandLineAnswersForOtherNodes(t *testing.T) {
	g := newGroup(t)
	g.more = testenv.HostIsAProxy
	a, b, c := g.node("a").serve(), g.node("b").serve(), g.node("c").serve()
	_, token := a.token("run,agents,approve,admin")
	worker := a.register(token, "supervised", 10)
	ask := func(conversation string) string {
		decision, question := a.announce(worker, conversation, "send_email")
		if decision != "PENDING" {
			t.Fatalf("the decision is %s", decision)
		}
		b.listsSoon(question)
		return question
	}
	question := ask("first")
	if text := b.said("approvals", "list"); !strings.Contains(text, "at node a") {
		t.Errorf("the questions at node b: %s", text)
	}
	if text := b.said("approvals", "show", question); !strings.Contains(text, "send_email") {
		t.Errorf("the question at node b: %s", text)
	}
	out, err := b.plain("approvals", "approve", "--yes", question).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "terminal") {
		t.Errorf("an approval without a terminal: %v\n%s", err, out)
	}
	var wait sync.WaitGroup
	results := make([]string, 4)
	for i := range results {
		n := []*node{b, c}[i%2]
		cmd := testenv.AtTerminal(t, n.plain("approvals", "approve", "--yes", question))
		wait.Go(func() {
			out, err := cmd.CombinedOutput()
			results[i] = fmt.Sprintf("%v %s", err, out)
		})
	}
	wait.Wait()
	taken, late := 0, 0
	for _, text := range results {
		switch {
		case strings.Contains(text, "approved "+question):
			taken++
		case strings.Contains(text, "not open"), strings.Contains(text, "answered already"):
			late++
		}
	}
	if taken != 1 || late != len(results)-1 {
		t.Errorf("%d answers were taken, %d were too late\n%s", taken, late, strings.Join(results, "\n"))
	}
	wantSoon(t, "APPROVED", func() string { decision, _ := b.announce(worker, "first", "send_email"); return decision })
	if decision, _ := a.announce(worker, "first", "send_email"); decision != "DENIED" {
		t.Errorf("the answer was used again at node a: %s", decision)
	}
	second := ask("second")
	if text := b.said("approvals", "deny", second, "--reason", "not today"); !strings.Contains(text, "denied "+second) {
		t.Errorf("a refusal at node b: %s", text)
	}
	wantSoon(t, "DENIED", func() string { decision, _ := a.announce(worker, "second", "send_email"); return decision })
	watched(t, b, ask)
}

// listsSoon waits until airlock approvals list has a question.
func (n *node) listsSoon(question string) {
	n.Helper()
	testenv.Await(n, question, func() bool { return strings.Contains(n.said("approvals", "list"), question) })
}

// A program that an agent's host starts approves its questions at no node.
func TestAHostApprovesAtNoNode(t *testing.T) {
	g := newGroup(t)
	a, b := g.node("a").serve(), g.node("b").serve()
	_, token := a.token("run,agents,approve,admin")
	decision, question := a.announce(a.register(token, "supervised", 10), "first", "send_email")
	if decision != "PENDING" {
		t.Fatalf("the decision is %s", decision)
	}
	b.listsSoon(question)
	for _, n := range []*node{a, b} {
		out, err := testenv.AtTerminal(t, n.plain("approvals", "approve", "--yes", question)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "the agent's own host") {
			t.Errorf("an approval by the host at %s: %v\n%s", n.url, err, out)
		}
	}
}

// watched shows a question of another node with airlock approvals watch.
func watched(t *testing.T, b *node, ask func(string) string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := b.plain("approvals", "watch")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	question := ask("third")
	text := ""
	buffer := make([]byte, 4096)
	for !strings.Contains(text, "airlock approvals approve "+question) {
		n, err := out.Read(buffer)
		if text += string(buffer[:n]); err != nil {
			t.Fatalf("watching: %s (%v)", text, err)
		}
	}
	stop()
	_ = cmd.Wait() // it was killed
}
