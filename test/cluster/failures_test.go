package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/objects/objectstest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// failing is a cluster that calls are made in while its parts fail.
type failing struct {
	*group
	scale    int
	database *databasetest.Pair
	objects  *objectstest.Server
	nodes    []*node
	broken   []sync.Mutex             // of the nodes; locked during a failure
	urls     []atomic.Pointer[string] // of the nodes
	tokens   [2]string                // of two owners
	worker   agent

	stop              atomic.Bool
	begun, answers    atomic.Int64
	runs              sync.Map     // the IDs of the runs that were answered
	listed            atomic.Int64 // runs that their owner has seen in a list
	approved, unknown atomic.Int64 // actions of the agent; unknown ones were not answered
}

// large is the scale from which the numbers are those of issue 28: 100 is the whole schedule.
const large = 10

// issue 28: nodes are killed and cut off from each other and from the database, the database fails over to its standby
// and loses its connections, and the object store is away, while callers at random nodes run programs. The clock of one
// node is 10 minutes ahead. Each call that was carried out has a record before it, none was carried out twice, no owner
// sees a run of another one, the budget is not overdrawn, each run has ended, and the logs of all nodes are sound.
//
// AIRLOCK_FAILURES is the number of nodes that are killed. With 100, there are 20 partitions, 5 failovers, 50 callers
// and at least 100,000 calls.
func TestCallsUnderFailures(t *testing.T) {
	if !ownNetwork(t) {
		return
	}
	scale, err := strconv.Atoi(cmp.Or(os.Getenv("AIRLOCK_FAILURES"), "1"))
	if err != nil || scale < 1 {
		t.Fatal("AIRLOCK_FAILURES is not a number: ", err)
	}
	chosen := cmp.Or(os.Getenv("AIRLOCK_FAILURES_SEED"), strconv.FormatInt(time.Now().UnixNano(), 10))
	seed, err := strconv.ParseUint(chosen, 10, 64)
	if err != nil {
		t.Fatal("AIRLOCK_FAILURES_SEED is not a number: ", err)
	}
	t.Logf("AIRLOCK_FAILURES_SEED=%d", seed)
	built, c := testenv.Sandbox(t), &counted{made: map[string]int{}}
	f := newFailing(t, built, c, scale)
	var callers sync.WaitGroup
	for caller := range f.sized(6, 50) {
		source := rand.New(rand.NewPCG(seed, uint64(caller)+1))
		callers.Go(func() { f.call(caller%2, source) })
	}
	f.schedule(rand.New(rand.NewPCG(seed, 0)))
	testenv.Await(t, "enough calls", func() bool { return f.scale < large || c.total() >= 1000*f.scale })
	f.stop.Store(true)
	callers.Wait()
	f.compare(c)
}

func newFailing(t *testing.T, built testenv.Env, c *counted, scale int) *failing {
	t.Helper()
	pair := databasetest.StartPair(t, firstServer, secondServer)
	f := &failing{group: newGroupAt(t, built, databasetest.SchemaAt(t, pair.Address())), scale: scale, database: pair,
		objects: objectstest.StartAt(t, bridgeOfTest), broken: make([]sync.Mutex, 3),
		urls: make([]atomic.Pointer[string], 3)}
	f.slots = f.sized(8, 4)
	f.callsUnder(c.server(), "permit(principal, action, resource);")
	f.more = "  objects: " + f.objects.Address("logs") + "\n" + f.more +
		"audit: {clearArguments: true, durability: replicated}\n"
	machines := []*machine{newMachine(t, 0), newMachine(t, 1), newMachine(t, 2)}
	f.more = strings.Replace(f.more, "serve: {", fmt.Sprintf("serve: {proxy: true, hosts: [%s, %s, %s], ",
		machines[0].address, machines[1].address, machines[2].address), 1)
	for i, m := range machines {
		n := f.nodeOn(m, string(rune('a'+i)))
		if i == 1 {
			n.program = ahead(t, 10*time.Minute)
		}
		f.nodes = append(f.nodes, n.serve())
		f.urls[i].Store(&n.url)
	}
	for i, owner := range []string{"ann", "ben"} {
		var made madeToken
		f.nodes[0].airlock(&made, "tokens", "create", "laptop", "--for", owner, "--scope", "run,agents")
		f.tokens[i] = made.Token
	}
	f.worker = f.nodes[0].register(f.tokens[0], "autonomous", float64(f.budget()))
	return f
}

// sized returns a number by the scale.
func (f *failing) sized(small, many int) int {
	if f.scale < large {
		return small
	}
	return many
}

// schedule has everything fail, at two nodes and in the servers at the same time.
func (f *failing) schedule(random *rand.Rand) {
	ofNodes, ofServers := make(chan func(*rand.Rand), 2*f.scale+1), make(chan func(*rand.Rand), 2*f.scale+2)
	for range f.scale {
		ofNodes <- f.kill
	}
	for range max(f.scale/5, 2) {
		ofNodes <- f.cut
	}
	for range max(f.scale/20, 1) {
		ofServers <- f.failOver
		ofServers <- f.disconnect
	}
	ofServers <- f.withoutObjects
	close(ofNodes)
	close(ofServers)
	var lanes sync.WaitGroup
	for _, lane := range []chan func(*rand.Rand){ofNodes, ofNodes, ofServers} {
		source := rand.New(rand.NewPCG(random.Uint64(), 0))
		lanes.Go(func() {
			for fail := range lane {
				for before := f.answers.Load(); f.answers.Load() == before && f.Context().Err() == nil; {
					time.Sleep(10 * time.Millisecond)
				}
				fail(source)
			}
		})
	}
	lanes.Wait()
}

// last waits while something is away, for up to a number of seconds.
func (f *failing) last(random *rand.Rand, many int) {
	time.Sleep(time.Duration(1000+random.IntN(1000*f.sized(1, many))) * time.Millisecond) // the failure itself
}

func (f *failing) kill(random *rand.Rand) {
	node := random.IntN(len(f.nodes))
	f.broken[node].Lock()
	defer f.broken[node].Unlock()
	n := f.nodes[node]
	f.Logf("node %d is killed", node)
	n.end(syscall.SIGKILL)
	// It waits until the others give the former process up. The database may be away.
	for err := n.start(); err != nil && f.Context().Err() == nil; err = n.start() {
		f.Logf("node %d is started again: %v", node, err)
	}
	url := n.url
	f.urls[node].Store(&url)
}

// cut loses all packets between a node and another one, or to the database.
func (f *failing) cut(random *rand.Rand) {
	node := random.IntN(len(f.nodes))
	f.broken[node].Lock()
	defer f.broken[node].Unlock()
	m := f.nodes[node].machine
	if other := random.IntN(2 * len(f.nodes)); other < len(f.nodes) && other != node {
		peer := f.nodes[other].machine
		f.Logf("nodes %d and %d do not reach each other", node, other)
		m.lose(f.T, peer.address)
		peer.lose(f.T, m.address)
		f.last(random, 40)
		m.find(f.T, peer.address)
		peer.find(f.T, m.address)
		return
	}
	f.Logf("node %d does not reach the database", node)
	m.lose(f.T, firstServer)
	m.lose(f.T, secondServer)
	f.last(random, 40)
	m.find(f.T, firstServer)
	m.find(f.T, secondServer)
}

func (f *failing) failOver(*rand.Rand) {
	f.Logf("the database fails over")
	f.database.Fail()
}

func (f *failing) disconnect(*rand.Rand) {
	f.Logf("the database loses all connections")
	databasetest.Terminate(f.T, f.address)
}

func (f *failing) withoutObjects(random *rand.Rand) {
	f.Logf("the object store is away")
	f.objects.Stop()
	f.last(random, 60)
	f.objects.Run()
}

// at returns a random node, as it is now.
func (f *failing) at(random *rand.Rand) *node {
	i := random.IntN(len(f.nodes))
	return &node{group: f.group, url: *f.urls[i].Load()}
}

// call runs programs of an owner at random nodes. The names of their calls are used once.
func (f *failing) call(owner int, random *rand.Rand) {
	for !f.stop.Load() && f.Context().Err() == nil {
		number := f.begun.Add(1)
		run, err := f.run(f.at(random).url, f.tokens[owner], fmt.Sprintf("run-%d-", number))
		f.announceOnce(f.at(random), number)
		if err != nil {
			time.Sleep(50 * time.Millisecond) // a caller that tries again
			continue
		}
		f.answers.Add(1)
		f.runs.Store(run, true)
		f.hidden(f.at(random), owner, run)
	}
}

// announceOnce announces an action that has a price.
func (f *failing) announceOnce(n *node, number int64) {
	status, answer, err := n.try("/v1/agents/"+f.worker.id+"/actions", "X-Agent-Token", f.worker.token, map[string]any{
		"action":  map[string]any{"type": "calculate", "query": "1"},
		"context": map[string]any{"conversation_id": fmt.Sprint("conversation ", number), "step_number": 1}})
	switch {
	case err != nil || status >= http.StatusInternalServerError:
		f.unknown.Add(1)
	case answer["decision"] == "APPROVED":
		f.approved.Add(1)
	}
}

// hidden lists runs as the owner of one, and as somebody else.
func (f *failing) hidden(n *node, owner int, run string) {
	for i, token := range f.tokens {
		_, list, _ := n.tryGet("/v1/runs?limit=200", token) // the node may be away
		switch lists := strings.Contains(list, run); {
		case lists && i != owner:
			f.Errorf("run %s is visible to another owner", run)
		case lists:
			f.listed.Add(1)
		}
	}
}

func (f *failing) host(ctx context.Context, url, token string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url + "/mcp", MaxRetries: -1,
		HTTPClient: testenv.Bearer(token)}, nil)
}

// run runs one program and returns its ID. An error means that its caller does not know what became of it.
func (f *failing) run(url, token, name string) (id string, err error) {
	ctx, cancel := context.WithTimeout(f.Context(), 2*time.Minute)
	defer cancel()
	host, err := f.host(ctx, url, token)
	if err != nil {
		return "", err
	}
	defer host.Close()
	res, err := host.CallTool(ctx, &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{
		"language": "python", "code": fmt.Sprintf(`from servers.alpha import change
for i in range(%d):
    await change({"name": f"%s{i}"})
result = "all"`, f.calls(), name)}})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(res)
	if err == nil && res.IsError {
		err = fmt.Errorf("the answer is an error: %s", text)
	}
	if err != nil {
		return "", err
	}
	return find(f.T, string(text), runID), nil
}

// calls is how many calls each program makes.
func (f *failing) calls() int { return f.sized(4, 100) }

// budget is how many actions the agent may do. Each program begins with one.
func (f *failing) budget() int64 { return int64(f.sized(5, 20)) }

// compare compares the effects of the calls with the records of all nodes.
func (f *failing) compare(c *counted) {
	f.Helper()
	approved, unknown := f.approved.Load(), f.unknown.Load()
	f.Logf("%d programs began, %d were answered; %d calls were made; %d actions were approved, %d not answered",
		f.begun.Load(), f.answers.Load(), c.total(), approved, unknown)
	if most := f.budget(); approved > most || approved+unknown < most {
		f.Errorf("%d actions were approved and %d not answered, with a budget of %d", approved, unknown, most)
	}
	if f.listed.Load() == 0 {
		f.Error("no owner has seen a run in a list")
	}
	a := f.nodes[0]
	var list struct {
		Runs []struct {
			RunID string `json:"run_id"`
			State string
		}
		Unanswered []string
	}
	testenv.Await(f, "all nodes list their runs", func() bool {
		list.Unanswered = nil
		a.airlock(&list, "runs", "list", "-n", "100000")
		return len(list.Unanswered) == 0
	})
	for _, run := range list.Runs {
		f.runs.Delete(run.RunID)
		if run.State == "running" || run.State == "queued" || run.State == "unfinished" {
			f.Errorf("run %s has not ended: %s", run.RunID, run.State)
		}
	}
	f.runs.Range(func(run, _ any) bool {
		f.Errorf("run %s was answered, and is not listed", run)
		return true
	})
	if got, sound := a.verifyAll(); !sound {
		f.Errorf("the logs are not sound: %+v", got)
	}
	to := filepath.Join(f.TempDir(), "logs")
	a.said("audit", "export", "--cluster", "--to", to)
	recorded, named := map[string]bool{}, regexp.MustCompile(`"name":"([^"]+)"`)
	names, err := filepath.Glob(to + "/*")
	if err != nil || len(names) != len(f.nodes) {
		f.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, `"kind":"intent"`) {
				continue
			}
			for _, found := range named.FindAllStringSubmatch(line, -1) {
				recorded[found[1]] = true
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.made) < int(f.answers.Load())*f.calls() {
		f.Errorf("%d calls were carried out, and %d programs were answered", len(c.made), f.answers.Load())
	}
	for name, times := range c.made {
		if times != 1 {
			f.Errorf("the call %q was carried out %d times", name, times)
		}
		if !recorded[name] {
			f.Errorf("the call %q has no record", name)
		}
	}
}
