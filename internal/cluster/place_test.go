package cluster_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// at returns the name of the node that begins something new that a client asks a node for.
func (s *served) at(t *testing.T) string {
	t.Helper()
	status, text := s.get(t, "new", nil)
	var name string
	if _, err := fmt.Sscan(text, &name); err != nil || status != http.StatusOK {
		t.Fatalf("got %d %q, %v", status, text, err)
	}
	return name
}

// await repeats until get returns a text.
func await(t *testing.T, want string, get func() string) {
	t.Helper()
	testenv.Await(t, want, func() bool { return get() == want })
}

// awaitEnd waits until a node has seen that its connection to the node of an ID has ended.
func (s *served) awaitEnd(t *testing.T, id string) {
	t.Helper()
	testenv.Await(t, "a connection that is open has ended", func() bool {
		s.get(t, id, nil)
		return len(s.failed) > 0
	})
}

// A node without a free sandbox forwards new sessions and runs to one that has some, if there is one.
func TestABusyNodeForwardsWhatClientsBegin(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first, second := serve(t, a, describe(a)), serve(t, b, describe(b))
	busy := func(n int) func() cluster.Load {
		return func() cluster.Load { return cluster.Load{Busy: n, Sandboxes: 3} }
	}
	if got := first.at(t); got != "a" {
		t.Errorf("before the load is known, %s begins it", got)
	}
	b.ReportLoad(t.Context(), busy(1))
	a.ReportLoad(t.Context(), busy(2))
	if got := first.at(t); got != "a" {
		t.Errorf("with a free sandbox, %s begins it", got)
	}
	a.ReportLoad(t.Context(), busy(3))
	await(t, "b", func() string { return first.at(t) }) // when b's load is known
	if got := second.at(t); got != "b" {
		t.Errorf("at b, %s begins it", got)
	}
	counts := map[string]int{}
	for range 20 { // at b, two sandboxes were free; its next heartbeats say that they still are
		counts[first.at(t)]++
	}
	if counts["a"] < 10 {
		t.Errorf("a has sent %d of 20 to two free sandboxes", counts["b"])
	}
	b.ReportLoad(t.Context(), busy(5))
	await(t, "5 of 3", func() string {
		nodes, err := cluster.List(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d of %d", nodes[1].Load.Busy, nodes[1].Load.Sandboxes)
	})
	await(t, "a", func() string { return first.at(t) }) // when a has read it
}

// A node that cannot be reached, although it has a lease, is passed over: the next one begins what a client asks for.
func TestANodeThatIsNotReachedIsPassedOver(t *testing.T) {
	db := open(t)
	a, b, c := join(t, db, "a"), join(t, db, "b"), join(t, db, "c")
	first, second := serve(t, a, describe(a)), serve(t, b, describe(b))
	serve(t, c, describe(c))
	a.Leave(t.Context())
	for counts := map[string]int{}; counts["b"] == 0 || counts["c"] == 0; {
		counts[first.at(t)]++
	}
	second.stop()
	first.awaitEnd(t, b.Mark(madeID)) // b might have begun what it does not answer
	for range 20 {
		if status, text := first.get(t, "new", nil); status != http.StatusOK || !strings.Contains(text, " body ") ||
			!strings.HasPrefix(text, "c ") {
			t.Errorf("after b has ended: %d %s", status, text)
		}
	}
}

// A node that is ending begins nothing, if another one is there. What its sessions have is gone as soon as it does not
// answer.
func TestANodeLeaves(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first := serve(t, a, describe(a))
	if a.Leave(t.Context()); a.Leaving() {
		t.Error("a is leaving, but no node answers in its place")
	}
	second := serve(t, b, describe(b))
	await(t, "b", func() string { return first.at(t) })
	if got := second.at(t); got != "b" || !a.Leaving() || b.Leaving() {
		t.Errorf("at b, %s begins it; a leaves: %v, b leaves: %v", got, a.Leaving(), b.Leaving())
	}
	nodes, err := cluster.List(t.Context(), db)
	if err != nil || nodes[0].State != cluster.Leaving {
		t.Errorf("the nodes are %+v (%v)", nodes, err)
	}
	if status, text := second.get(t, a.Mark(madeID), nil); status != http.StatusOK {
		t.Errorf("what a has, while it answers: %d %s", status, text)
	}
	first.stop()
	second.awaitEnd(t, a.Mark(madeID))
	if gone := <-second.failed; !gone {
		t.Error("what a has is to come back, although a is ending")
	}
}
