package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// issue 28: an approval that covers further calls covers those of all nodes, and is listed and withdrawn at each. It
// stays in force when the node that asked has died.
func TestAGrantCountsAtAllNodes(t *testing.T) {
	g, c := newGroup(t), &counted{made: map[string]int{}}
	g.callsTo(c.server())
	a, b := g.node("a"), g.node("b")
	_, token := a.token("run")
	_, chief := a.token("run,approve,admin")
	a.serve()
	b.serve()
	begin := func(n *node, name string) (run string) {
		host := (&rotating{nodes: []*node{n}, token: token}).host(t, "/mcp", revisions[1])
		return find(t, call(t, host, "run_code", map[string]any{"language": "python", "background": true,
			"code": fmt.Sprintf("from servers.alpha import change\nresult = await change({'name': %q})", name)}), runID)
	}
	w := &suspendedRuns{t: t, token: token, chief: chief}
	await := func(n *node, run string) (question string) {
		w.await(n, "asking", func() bool {
			open := w.questions(n)[run]
			if len(open) > 0 {
				question = open[0]
			}
			return len(open) > 0
		})
		return question
	}
	first := begin(a, "first")
	question := await(b, first)
	var q struct{ Digest string }
	if err := json.Unmarshal([]byte(b.get("/v1/approvals/"+question, chief)), &q); err != nil {
		t.Fatal(err)
	}
	if status, answer := b.post("/v1/approvals/"+question, "Authorization", "Bearer "+chief, map[string]any{
		"decision": "approve", "digest": q.Digest, "for": time.Now().Add(time.Hour).Format(time.RFC3339),
	}); status != http.StatusOK {
		t.Fatalf("approving: %d %v", status, answer)
	}
	w.await(a, "covered", func() bool { return c.of("first") == 1 })
	grants := func(n *node) (ids []string) {
		var list struct{ Grants []struct{ ID string } }
		if err := json.Unmarshal([]byte(n.get("/v1/grants", chief)), &list); err != nil {
			t.Fatal(err)
		}
		for _, g := range list.Grants {
			ids = append(ids, g.ID)
		}
		return ids
	}
	begin(b, "second")
	w.await(b, "covered", func() bool { return c.of("second") == 1 })
	ids := grants(a)
	if len(ids) != 1 || !slices.Equal(ids, grants(b)) {
		t.Fatalf("node a lists %q, node b %q", ids, grants(b))
	}
	lists := map[string]string{"the command line": b.said("approvals", "grants"),
		"the console": b.person(chief).page("/questions")}
	for name, text := range lists {
		if !strings.Contains(text, ids[0]) {
			t.Errorf("%s of node b lacks %s: %s", name, ids[0], text)
		}
	}
	if err := a.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.process.Wait() // it was killed
	begin(b, "third")
	w.await(b, "covered", func() bool { return c.of("third") == 1 })
	a.serve()
	a.said("approvals", "withdraw", ids[0])
	if left := grants(b); len(left) != 0 {
		t.Errorf("node b lists %q after the withdrawal", left)
	}
	fourth := begin(b, "fourth")
	await(a, fourth)
	if made := c.of("fourth"); made != 0 {
		t.Errorf("the call was made %d times after the withdrawal", made)
	}
}
