package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// counted is a server whose calls have effects that can be counted.
type counted struct {
	mu   sync.Mutex // guards made
	made map[string]int
}

func (c *counted) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[name]
}

// total returns how many calls were made.
func (c *counted) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.made)
}

type named struct {
	Name string `json:"name"`
}

// newSuspendingGroup returns a cluster whose runs are suspended soon after they ask a person about a call.
func newSuspendingGroup(t *testing.T) (*group, *counted) {
	t.Helper()
	g, c := newGroup(t), &counted{made: map[string]int{}}
	g.callsTo(c.server())
	g.images = []string{"node", "python"}
	g.more += "runs: {suspendAfter: 100ms}\n"
	return g, c
}

// server returns the server with the tool change.
func (c *counted) server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "alpha", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "change", Description: "Change something."},
		func(_ context.Context, _ *mcp.CallToolRequest, what named) (*mcp.CallToolResult, map[string]any, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.made[what.Name]++
			return nil, map[string]any{"changed": what.Name}, nil
		})
	return server
}

// Programs that wait for a person twice.
var waitingPrograms = map[string]string{
	"python": `
import hashlib, os, random
from servers.alpha import change
print("before")
data = os.urandom(3 << 20); digest = hashlib.sha256(data).digest()
client.attach(b"a,b", "text/csv", "table.csv")
kept = open("/tmp/kept", "w+"); kept.write("kept")
await change({"name": "NAME-1"})
print("between")
await change({"name": "NAME-2"})
kept.seek(0)
result = [kept.read(), digest == hashlib.sha256(data).digest()]`,
	"node": `
import { change } from "/workspace/servers/alpha/index.js";
console.log("before");
const data = Buffer.alloc(3 << 20, "abc");
await client.attach(Buffer.from("a,b"), "text/csv", "table.csv");
await change({ name: "NAME-1" });
console.log("between");
await change({ name: "NAME-2" });
export default ["kept", data.every((byte, i) => byte === 97 + (i % 3))];`,
}

// suspendedRuns are runs that wait for a person, one in each language.
type suspendedRuns struct {
	t     *testing.T
	token string            // of the host
	chief string            // of a person
	runs  map[string]string // by language
}

func beginWaiting(t *testing.T, n *node, prefix string) *suspendedRuns {
	t.Helper()
	w := &suspendedRuns{t: t, runs: map[string]string{}}
	_, w.token = n.token("run")
	_, w.chief = n.token("run,approve,admin")
	host := (&rotating{nodes: []*node{n}, token: w.token}).host(t, "/mcp", revisions[1])
	for language, code := range waitingPrograms {
		w.runs[language] = find(t, call(t, host, "run_code", map[string]any{"language": language, "background": true,
			"code": strings.ReplaceAll(code, "NAME", prefix+language)}), runID)
	}
	w.await(n, "suspended", func() bool { return n.suspended() == len(w.runs) })
	return w
}

// await waits for a condition.
func (w *suspendedRuns) await(n *node, what string, met func() bool) {
	w.t.Helper()
	testenv.Await(w.t, n.file+": "+what, met)
}

// statusOf is what `airlock status --json` shows.
type statusOf struct {
	Suspended int `json:"suspended"`
}

func (n *node) suspended() int {
	var s statusOf
	out, err := n.command("status", "--json").Output()
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		n.Fatalf("airlock status: %v\n%s", err, out)
	}
	return s.Suspended
}

// questions returns the open questions that a node shows, by run.
func (w *suspendedRuns) questions(n *node) map[string][]string {
	w.t.Helper()
	var list struct {
		Approvals []struct {
			ID    string
			RunID string `json:"run_id"`
		}
	}
	text := n.get("/v1/approvals", w.chief)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	open := map[string][]string{}
	for _, q := range list.Approvals {
		open[q.RunID] = append(open[q.RunID], q.ID)
	}
	return open
}

// approve waits until a node asks about all runs, and approves their calls.
func (w *suspendedRuns) approve(n *node) {
	w.t.Helper()
	left := slices.Collect(maps.Values(w.runs))
	w.await(n, "asking", func() bool {
		open := w.questions(n)
		left = slices.DeleteFunc(left, func(run string) bool {
			for _, question := range open[run] { // a node that was stopped has another one, until it withdraws it
				var q struct{ Digest string }
				_, text, err := n.tryGet("/v1/approvals/"+question, w.chief) // it may be withdrawn
				if err := errors.Join(err, json.Unmarshal([]byte(text), &q)); err != nil {
					w.t.Fatal(err)
				}
				status, answer := n.post("/v1/approvals/"+question, "Authorization", "Bearer "+w.chief,
					map[string]any{"decision": "approve", "digest": q.Digest})
				if status == http.StatusOK {
					return true
				}
				if !strings.Contains(fmt.Sprint(answer), "its run ended") && status != http.StatusNotFound {
					w.t.Errorf("approving: %d %v", status, answer)
				}
			}
			return false
		})
		return len(left) == 0
	})
}

// ended waits until get_run at a node has the results of all runs.
func (w *suspendedRuns) ended(n *node) {
	w.t.Helper()
	host := (&rotating{nodes: []*node{n}, token: w.token}).host(w.t, "/mcp", revisions[1])
	for language, run := range w.runs {
		got := ""
		w.await(n, "ended", func() bool {
			got = call(w.t, host, "get_run", map[string]any{"run_id": run})
			return strings.Contains(got, `"state":"done"`)
		})
		if !strings.Contains(got, `"data":["kept",true]`) || !strings.Contains(got, `before\nbetween`) {
			w.t.Errorf("%s: %s", language, got)
		}
		file, err := host.ReadResource(w.t.Context(),
			&mcp.ReadResourceParams{URI: "airlock://runs/" + run + "/table.csv"})
		if err != nil || file.Contents[0].Text != "a,b" {
			w.t.Errorf("%s: the file of the run: %+v, %v", language, file, err)
		}
	}
}

// A suspended run goes on at another node when its node was killed, has ended, or was stopped for so long that it has
// no lease. Its node does not continue it afterwards, and each call is made once (issue 29).
func TestSuspendedRunsGoOnAtAnotherNode(t *testing.T) {
	for _, how := range []string{"killed", "ended", "stopped"} {
		t.Run(how, func(t *testing.T) {
			g, c := newSuspendingGroup(t)
			a := g.node("a").serve()
			w := beginWaiting(t, a, how+"-")
			b := g.node("b").serve()
			switch how {
			case "killed":
				_ = a.process.Process.Kill()
				_ = a.process.Wait() // it was killed
			case "ended":
				_ = a.process.Process.Signal(syscall.SIGTERM)
				if err := a.process.Wait(); err != nil {
					t.Error(err)
				}
			case "stopped":
				_ = a.process.Process.Signal(syscall.SIGSTOP)
			}
			w.await(b, "asking", func() bool { return len(w.questions(b)) == len(w.runs) })
			w.await(b, "suspended", func() bool { return b.suspended() == len(w.runs) })
			if how == "stopped" {
				_ = a.process.Process.Signal(syscall.SIGCONT)
				w.await(a, "without runs", func() bool { return a.suspended() == 0 })
			} else {
				a.serve()
			}
			w.approve(b)
			w.await(b, "suspended again", func() bool {
				return c.of(how+"-python-1")+c.of(how+"-node-1") == 2 && b.suspended() == len(w.runs)
			})
			w.approve(b)
			for _, n := range []*node{b, a} { // the IDs of the runs name node a
				w.ended(n)
			}
			for language := range w.runs {
				for i := range 2 {
					if made := c.of(fmt.Sprintf("%s-%s-%d", how, language, i+1)); made != 1 {
						t.Errorf("call %d of %s was made %d times", i+1, language, made)
					}
				}
			}
			for _, n := range []*node{a, b} {
				if left, err := os.ReadDir(filepath.Join(n.home, "suspended")); err != nil && !os.IsNotExist(err) ||
					len(left) > 0 {
					t.Errorf("%v, %v are left", left, err)
				}
			}
		})
	}
}
