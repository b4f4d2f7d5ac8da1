package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// A program that a client sends to a node without a free sandbox runs at another one (issue 28).
func TestABusyNodeForwardsPrograms(t *testing.T) {
	g := newGroup(t)
	g.slots = 1
	a, b := g.node("a").serve(), g.node("b").serve()
	_, token := a.token("run")
	for i, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			busy := (&rotating{nodes: []*node{a}, token: token}).host(t, "/mcp", revisions[1])
			filler := call(t, busy, "run_code", map[string]any{"language": "python", "background": true,
				"code": "import time\ntime.sleep(600)"})
			a.awaitLoad(1)
			// A session stays at its node, so another one is opened for each program.
			program := (&rotating{nodes: []*node{a}, token: token}).host(t, "/mcp", revision)
			got := call(t, program, "run_code", map[string]any{"language": "python", "code": "result = 6 * 7"})
			if !strings.Contains(got, `"data":42`) {
				t.Errorf("the program: %s", got)
			}
			var runs struct {
				Runs []struct{ Node, State string }
			}
			b.airlock(&runs, "runs", "list")
			at := map[string]int{}
			for _, run := range runs.Runs {
				at[run.Node+" "+run.State]++
			}
			if at["b ok"] != i+1 {
				t.Errorf("the runs are %v, want %d that ended at b", at, i+1)
			}
			call(t, busy, "cancel_run", map[string]any{"run_id": find(t, filler, runID)})
			a.awaitLoad(0)
		})
	}
}

// awaitLoad waits until it is known how many sandboxes of node a are in use.
func (n *node) awaitLoad(want int) {
	n.Helper()
	testenv.Await(n, fmt.Sprintf("node a has %d sandboxes in use", want), func() bool {
		var status struct {
			Nodes []struct{ Load struct{ Busy int } }
		}
		n.airlock(&status, "status", "--cluster")
		return status.Nodes[0].Load.Busy == want
	})
}

// When the nodes are replaced one after the other, no request fails. A session whose node is ending is unknown when it
// has nothing to wait for, so that its client opens another one (issue 28).
func TestNodesAreReplacedUnderLoad(t *testing.T) {
	g := newGroup(t)
	g.more = "serve: {drainTime: 30s}\n"
	balancer := &ready{}
	nodes := []*node{g.node("a").serve(), g.node("b").serve(), g.node("c").serve()}
	balancer.set(nodes)
	_, token := nodes[0].token("run")
	replaced(nodes, &Clients{HTTP: &http.Client{Transport: balancer}, Token: token}, func() { balancer.set(nodes) })
}

// nginx learns that a node is ending from its connections only. The nodes also decide about announced actions, whose
// requests nginx does not send twice.
func TestNodesAreReplacedBehindNginx(t *testing.T) {
	g := newGroup(t)
	settings, err := json.Marshal(BehindBalancer())
	if err != nil {
		t.Fatal(err)
	}
	g.more = fmt.Sprintf("serve: %s\n", settings)
	nodes := []*node{g.node("a"), g.node("b"), g.node("c")}
	var addresses []string
	for _, n := range nodes {
		n.listen = testenv.ReservedAddress(t)
		addresses = append(addresses, n.listen)
		n.serve()
	}
	client, stop, err := StartBalancer(testenv.RepoRoot(t), t.TempDir(), addresses)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if said := stop(); t.Failed() {
			t.Logf("nginx: %s", said)
		}
	})
	_, token := nodes[0].token("run,agents")
	clients := &Clients{HTTP: client, Token: token}
	var work sync.WaitGroup
	for i := range 2 { // each with its own budget: transactions of one agent wait for each other
		worker := nodes[0].register(token, "autonomous", 1e6)
		work.Go(func() { clients.Act(t.Context(), worker.id, worker.token, fmt.Sprint("client ", i, " ")) })
	}
	replaced(nodes, clients, func() {})
	work.Wait()
	if clients.Acts.Load() == 0 {
		t.Error("no action was approved")
	}
}

// replaced restarts the nodes one after the other while clients run programs, and then stops the clients. restarted is
// called after each start.
func replaced(nodes []*node, clients *Clients, restarted func()) {
	t := nodes[0].T
	t.Helper()
	var work sync.WaitGroup
	for _, revision := range revisions {
		for range 2 {
			work.Go(func() { clients.Run(t.Context(), revision, "import time\ntime.sleep(0.3)\nresult = 1") })
		}
	}
	for _, n := range nodes {
		for before := clients.Runs.Load(); clients.Runs.Load() < before+8 && len(clients.Failures()) == 0; {
			time.Sleep(10 * time.Millisecond)
		}
		if err := n.process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := n.process.Wait(); err != nil {
			t.Errorf("node %s: %v", n.file, err)
		}
		n.serve()
		restarted()
	}
	clients.Stop()
	work.Wait()
	runs, opened := clients.Runs.Load(), clients.Sessions.Load()
	t.Logf("%d programs ran in %d sessions, and %d actions were approved", runs, opened, clients.Acts.Load())
	if runs < 24 || opened < 6 {
		t.Errorf("%d programs ran in %d sessions", runs, opened)
	}
	for _, failure := range clients.Failures() {
		t.Error(failure)
	}
}

// ready sends each request to the next node that is ready, as a load balancer without affinity does.
type ready struct {
	mu    sync.Mutex // guards the fields below
	urls  []string
	asked int
}

// set replaces the addresses of the nodes.
func (b *ready) set(nodes []*node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.urls = nil
	for _, n := range nodes {
		b.urls = append(b.urls, n.url)
	}
}

func (b *ready) RoundTrip(r *http.Request) (*http.Response, error) {
	for r.Context().Err() == nil {
		b.mu.Lock()
		b.asked++
		to, err := url.Parse(b.urls[b.asked%len(b.urls)])
		b.mu.Unlock()
		if err != nil {
			return nil, err
		}
		answer, err := http.Get(to.String() + "/readyz")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			continue
		}
		r = r.Clone(r.Context())
		r.URL.Host, r.Host = to.Host, to.Host
		return http.DefaultTransport.RoundTrip(r)
	}
	return nil, r.Context().Err()
}
