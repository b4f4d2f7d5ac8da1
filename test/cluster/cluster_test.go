package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

type madeToken struct {
	ID    string `json:"token_id"`
	Token string `json:"token"`
}

func (n *node) token(scopes string) (id, value string) {
	n.Helper()
	var made madeToken
	n.airlock(&made, "tokens", "create", "laptop", "--scope", scopes)
	return made.ID, made.Token
}

// status returns the status of a request that a token identifies.
func (n *node) status(token string) int {
	status, _ := n.post("/mcp", "Authorization", "Bearer "+token, map[string]any{"jsonrpc": "2.0", "id": 1,
		"method": "initialize", "params": map[string]any{"protocolVersion": "2025-11-25",
			"capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}}})
	return status
}

func (n *node) register(token, kind string, dailyUSD float64) agent {
	n.Helper()
	status, made := n.post("/v1/agents", "Authorization", "Bearer "+token, map[string]any{"name": "worker",
		"type": kind, "budget": map[string]any{"max_daily_cost_usd": dailyUSD, "max_requests_per_hour": 1_000_000}})
	id, _ := made["agent_id"].(string)
	value, _ := made["agent_token"].(string)
	if value == "" {
		n.Fatalf("registering an agent: %d %v", status, made)
	}
	return agent{id, value}
}

// The agents of a principal have one request rate, whichever nodes they use (issue 28).
func TestTheRequestRateIsThatOfTheCluster(t *testing.T) {
	g := newGroup(t)
	g.rate = "20/h"
	nodes := []*node{g.node("a").serve(), g.node("b").serve()}
	_, token := nodes[0].token("run,agents")
	worker := nodes[0].register(token, "autonomous", 100)
	answers := map[string]int{}
	for i := range 30 {
		_, answer := nodes[i%2].post("/v1/agents/"+worker.id+"/actions", "X-Agent-Token", worker.token, map[string]any{
			"action":  map[string]any{"type": "calculate"},
			"context": map[string]any{"conversation_id": fmt.Sprint("conversation ", i), "step_number": 1}})
		failed, _ := answer["error"].(map[string]any)
		answers[fmt.Sprint(answer["decision"], failed["code"])]++
	}
	if want := map[string]int{"APPROVED<nil>": 20, "DENIEDQWED-AGENT-RATE-001": 10}; !maps.Equal(answers, want) {
		t.Errorf("the answers are %v, want %v", answers, want)
	}
}

// A server has one rate, whichever nodes call it.
func TestTheRateOfAServerIsThatOfTheCluster(t *testing.T) {
	g, c := newGroup(t), &counted{made: map[string]int{}}
	g.callsUnder(c.server(), "permit(principal, action, resource);")
	g.more = strings.Replace(g.more, "trustAnnotations: true", "trustAnnotations: true, rate: 20/h", 1)
	nodes := []*node{g.node("a").serve(), g.node("b").serve()}
	_, token := nodes[0].token("run")
	var wait sync.WaitGroup
	for i, n := range nodes {
		host := (&rotating{nodes: []*node{n}, token: token}).host(t, "/mcp", revisions[1])
		wait.Go(func() {
			res, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{
				"language": "python", "code": fmt.Sprintf(`from servers.alpha import change
refused = []
for number in range(25):
    try:
        await change({"name": f"%d-{number}"})
    except Exception as error:
        refused.append(f"{error.type}: {error}")
result = refused`, i)}})
			text, _ := json.Marshal(res) // it may be nil
			refusal := regexp.MustCompile(`RateLimit: server \\+"alpha\\+" is called too often; try again in [23]m`)
			if err != nil || !refusal.Match(text) {
				t.Errorf("the program at node %d: %s %v", i, text, err)
			}
		})
	}
	wait.Wait()
	if got := c.total(); got != 20 {
		t.Errorf("%d calls were made, want 20", got)
	}
}

func TestTwoNodesShareTheirState(t *testing.T) {
	g := newGroup(t)
	g.more = testenv.HostIsAProxy
	a, b := g.node("a").serve(), g.node("b").serve()
	nodes := []*node{a, b}
	_, token := a.token("run,agents,approve,admin")
	_, chief := a.token("admin") // the token that announces cannot approve

	t.Run("tokens", func(t *testing.T) {
		id, short := a.token("run")
		for _, n := range nodes {
			if got := n.status(short); got != http.StatusOK {
				t.Errorf("the token of node a: %d at %s", got, n.url)
			}
		}
		b.airlock(nil, "tokens", "revoke", id)
		for _, n := range nodes {
			if got := n.status(short); got != http.StatusUnauthorized {
				t.Errorf("the token that was revoked at node b: %d at %s", got, n.url)
			}
		}
	})
	t.Run("a budget is never overdrawn", func(t *testing.T) {
		const dollars, callers = 10, 40
		worker := a.register(token, "autonomous", dollars)
		var approved atomic.Int32
		var wait sync.WaitGroup
		for i := range callers {
			wait.Go(func() {
				got, _ := nodes[i%2].announce(worker, fmt.Sprint("conversation ", i), "calculate")
				if got == "APPROVED" {
					approved.Add(1)
				}
			})
		}
		wait.Wait()
		if got := approved.Load(); got != dollars {
			t.Errorf("%d actions of one dollar were approved with a budget of %d", got, dollars)
		}
	})
	t.Run("a question is answered exactly once", func(t *testing.T) { answerOnce(t, a, b, token, chief) })
	t.Run("names", func(t *testing.T) {
		second := g.node("b")
		out, err := second.command("serve", "--listen", "127.0.0.1:0").CombinedOutput()
		if err == nil || !strings.Contains(string(out), `another process serves as node "b" of this cluster`) ||
			!strings.Contains(string(out), "hint: give each node its own name") {
			t.Errorf("a second node b: %v\n%s", err, out)
		}
		if err := a.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = a.process.Wait() // it was killed
		a.serve()
		var listed struct {
			Nodes []struct {
				Name, State string
				Epoch       int
			}
		}
		b.airlock(&listed, "status", "--cluster")
		if got := fmt.Sprint(listed.Nodes); got != "[{a alive 2} {b alive 1}]" {
			t.Errorf("the nodes are %s", got)
		}
		if got := a.status(token); got != http.StatusOK {
			t.Errorf("the token after the restart: %d", got)
		}
	})
}

// answerOnce has an agent of a token ask, and the person with another one, chief, answer at two nodes.
func answerOnce(t *testing.T, a, b *node, token, chief string) {
	worker := b.register(token, "supervised", 10)
	decision, question := a.announce(worker, "first", "send_email")
	if decision != "PENDING" {
		t.Fatalf("the decision is %s", decision)
	}
	if decision, again := b.announce(worker, "first", "send_email"); decision != "PENDING" || again != question {
		t.Errorf("node b says %s, question %q; node a asked %q", decision, again, question)
	}
	people := []*person{a.person(chief), b.person(chief)}
	var pages [2]string
	forms := []url.Values{people[0].form(question), people[1].form(question)} // both before the first answer
	var wait sync.WaitGroup
	for i, p := range people {
		wait.Go(func() { pages[i] = p.send("/questions/"+question, forms[i]) })
	}
	wait.Wait()
	taken, late := 0, 0
	for _, page := range pages {
		switch {
		case strings.Contains(page, "Allowed once"):
			taken++
		case strings.Contains(page, "came too late"):
			late++
		}
	}
	if taken != 1 || late != 1 {
		t.Errorf("%d answers were taken, %d were too late\n%s", taken, late, strings.Join(pages[:], "\n"))
	}
	wantSoon(t, "APPROVED", func() string { decision, _ := b.announce(worker, "first", "send_email"); return decision })
	if decision, _ := a.announce(worker, "first", "send_email"); decision != "DENIED" {
		t.Errorf("the answer was used again at node a: %s", decision)
	}
}

// wantSoon waits for a result that follows an answer.
func wantSoon(t *testing.T, want string, get func() string) {
	t.Helper()
	got := ""
	for t.Context().Err() == nil && !t.Failed() {
		if got = get(); got == want {
			return
		}
		if got != "PENDING" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("got %s, want %s", got, want)
}

// Without the database nothing is decided. A token that was just seen is still accepted.
func TestTheDatabaseIsAway(t *testing.T) {
	g, c := newGroup(t), &counted{made: map[string]int{}}
	g.callsUnder(c.server(), "permit(principal, action, resource);")
	n := g.node("a")
	way, address := g.through()
	n.address = address
	n.serve()
	_, token := n.token("run,agents")
	program := n.callForever(token, c)
	_, other := n.token("run")
	worker := n.register(token, "autonomous", 100)
	if got := n.status(token); got != http.StatusOK {
		t.Fatalf("the token: %d", got)
	}
	way.cut()
	before := c.total() // the program has 30 s from here
	if got := n.status(token); got != http.StatusOK {
		t.Errorf("a token that was just seen: %d", got)
	}
	if got := n.status(other); got != http.StatusServiceUnavailable {
		t.Errorf("a token that was not seen: %d", got)
	}
	status, answer := n.post("/v1/agents/"+worker.id+"/actions", "X-Agent-Token", worker.token, map[string]any{
		"action":  map[string]any{"type": "calculate", "query": "1"},
		"context": map[string]any{"conversation_id": "c", "step_number": 1}})
	if status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(answer), "does not answer") {
		t.Errorf("an action: %d %v", status, answer)
	}
	out, err := testenv.AtTerminal(t, n.command("tokens", "create", "x", "--scope", "run")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot be reached") || !strings.Contains(string(out), "hint: ") {
		t.Errorf("making a token: %v\n%s", err, out)
	}
	testenv.Await(t, "three calls", func() bool { return len(program) > 0 || c.total() >= before+3 })
	if got := c.total() - before; got < 3 {
		t.Errorf("the program made %d calls without the database", got)
	}
	ended := testenv.Receive(t, "the end of the program", program)
	if !strings.Contains(ended, "whether the caller may still act, so the call was not made") {
		t.Errorf("the program ended with %s", ended)
	}
	if err := os.Remove(filepath.Join(way.dir, ".s.PGSQL.5432")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	way.join(t)
	back := time.Now()
	testenv.Await(t, "a token is accepted", func() bool { return n.status(other) == http.StatusOK })
	t.Logf("a token is accepted %v after the database is back", time.Since(back))
	n.callForever(other, c) // until it has made a call
	t.Logf("a program makes calls %v after the database is back", time.Since(back))
	if got, _ := n.announce(worker, "after", "calculate"); got != "APPROVED" {
		t.Errorf("an action when the database is back: %s", got)
	}
}

func TestMistakesHaveAHint(t *testing.T) {
	g := newGroup(t)
	g.node("a").airlock(nil, "tokens", "list") // the key is that of the cluster from now on
	otherKey := filepath.Join(t.TempDir(), "other.key")
	if out, err := g.command("cluster", "key", otherKey).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	readable := filepath.Join(t.TempDir(), "readable.key")
	text, err := os.ReadFile(g.key)
	if err == nil {
		err = os.WriteFile(readable, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ address, key, text, hint string }{
		"another key":      {g.address, otherKey, "not the key of the cluster", "copy the file of cluster.key"},
		"no key":           {g.address, otherKey + "x", "no such file", "airlock cluster key FILE"},
		"a readable key":   {g.address, readable, "may be read by others", "airlock cluster key FILE"},
		"no variable":      {"", g.key, "AIRLOCK_DATABASE_URL is not set", "set it"},
		"not a URL":        {"mysql://x", g.key, "not one of PostgreSQL", "postgres://USER@HOST/DATABASE"},
		"no such database": {strings.Replace(g.address, "/postgres", "/none", 1), g.key, "does not exist", "createdb"},
		"nothing there":    {databasetest.With(g.address, "host", t.TempDir()), g.key, "cannot be reached", "start it"},
	} {
		t.Run(name, func(t *testing.T) {
			n := (&group{T: t, built: g.built, address: c.address, key: c.key}).node("x")
			out, err := n.command("tokens", "list").CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.text) || !strings.Contains(string(out), "hint: ") ||
				!strings.Contains(string(out), c.hint) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A node that was stopped for longer than its lease is replaced. When it continues, it ends.
func TestAReplacedNodeEnds(t *testing.T) {
	g, c := newGroup(t), &counted{made: map[string]int{}}
	g.callsUnder(c.server(), "permit(principal, action, resource);")
	first := g.node("a").serve()
	_, token := first.token("run,agents")
	worker := first.register(token, "autonomous", 100)
	program := first.callForever(token, c)
	process, second := first.process, g.node("a")
	second.said("trust", "--yes", second.file) // a node that is stopped does not tell whose hosts it serves
	if err := process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second.serve() // it waits until the first counts as dead
	if got, _ := second.announce(worker, "one", "calculate"); got != "APPROVED" {
		t.Errorf("an action at the new node: %s", got)
	}
	calls := c.total()
	if err := process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	status, answer, err := first.try("/v1/agents/"+worker.id+"/actions", "X-Agent-Token", worker.token, map[string]any{
		"action":  map[string]any{"type": "calculate", "query": "2"},
		"context": map[string]any{"conversation_id": "two", "step_number": 1}})
	if answer["decision"] != nil {
		t.Errorf("the replaced node decided: %d %v", status, answer)
	}
	t.Logf("the replaced node answered %d %v, %v", status, answer, err) // it may have ended
	if err := process.Wait(); err == nil || process.ProcessState.ExitCode() != 1 {
		t.Errorf("the replaced node ended with %v", err)
	}
	if got := c.total(); got != calls {
		t.Errorf("the program of the replaced node made %d calls afterwards; it ended with %s", got-calls,
			testenv.Receive(t, "the end of the program", program))
	}
}

// callForever runs a program that makes calls until one fails, and returns when it has made the first one. The channel
// gets the answer.
func (n *node) callForever(token string, c *counted) <-chan string {
	n.Helper()
	host := (&rotating{nodes: []*node{n}, token: token}).host(n.T, "/mcp", revisions[1])
	before, answer := c.total(), make(chan string, 1)
	prefix := fmt.Sprintf("forever-%d-", before)
	begin := func() {
		res, err := host.CallTool(n.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{
			"language": "python", "code": `import asyncio
from servers.alpha import change
number = 0
while True:
    await change({"name": f"` + prefix + `{number}"})
    number += 1
    await asyncio.sleep(0.1)`}})
		text, _ := json.Marshal(res) // it may be nil
		answer <- fmt.Sprintf("%s %v", text, err)
	}
	go begin()
	for c.total() == before && n.Context().Err() == nil {
		select {
		case got := <-answer: // its server may not be connected again yet
			n.Logf("a program ended without a call: %s", got)
			go begin()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return answer
}

// The state of a single machine is moved into a cluster, and back.
func TestStateIsMoved(t *testing.T) {
	g := newGroup(t)
	n := g.node("a")
	withCluster, err := os.ReadFile(n.file)
	if err != nil {
		t.Fatal(err)
	}
	alone, _, _ := strings.Cut(string(withCluster), "\ncluster:")
	configure := func(text string) {
		if err := os.WriteFile(n.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := func() (tokens, agents string) {
		for verb, out := range map[string]*string{"tokens": &tokens, "agents": &agents} {
			text, err := n.command(verb, "list", "--json").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			*out = string(text)
		}
		return tokens, agents
	}
	configure(alone)
	n.token("run,agents")
	n.airlock(nil, "agents", "create", "worker", "--type", "supervised", "--daily-usd", "5")
	tokens, agents := list()
	configure(string(withCluster))
	n.airlock(nil, "state", "import")
	if gotTokens, gotAgents := list(); gotTokens != tokens || gotAgents != agents {
		t.Errorf("in the cluster:\n%s%sbefore:\n%s%s", gotTokens, gotAgents, tokens, agents)
	}
	other := g.node("b")
	otherText, err := os.ReadFile(other.file)
	if err != nil {
		t.Fatal(err)
	}
	otherAlone, _, _ := strings.Cut(string(otherText), "\ncluster:")
	if err := os.WriteFile(other.file, []byte(otherAlone), 0o600); err != nil {
		t.Fatal(err)
	}
	other.token("run")
	if err := os.WriteFile(other.file, otherText, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := testenv.AtTerminal(t, other.command("state", "import")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "has tokens or agents already") {
		t.Errorf("a second import: %v\n%s", err, out)
	}
	n.airlock(nil, "state", "export")
	configure(alone)
	if gotTokens, gotAgents := list(); gotTokens != tokens || gotAgents != agents {
		t.Errorf("on one machine again:\n%s%sbefore:\n%s%s", gotTokens, gotAgents, tokens, agents)
	}
}
