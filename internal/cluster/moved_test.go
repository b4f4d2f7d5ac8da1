package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database"
)

// issue 29: requests for a run that another node has taken go to that node, and a node knows which of its runs are
// gone.
func TestARequestGoesToTheNodeThatHasTakenARun(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first, second := serve(t, a, describe(a)), serve(t, b, describe(b))
	run := a.Mark("run_" + madeID[4:])
	take := func() {
		t.Helper()
		if err := db.Fenced(b.Fence).Update(t.Context(), func(tx database.Tx) error {
			return b.Take(t.Context(), tx, run, a.ID())
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range []*served{first, second} {
		if _, text := node.get(t, run, nil); !strings.HasPrefix(text, "a ") {
			t.Errorf("before: %s", text)
		}
	}
	for range 2 {
		take()
		for _, node := range []*served{first, second} {
			if _, text := node.get(t, run, nil); !strings.HasPrefix(text, "b ") {
				t.Errorf("after: %s", text)
			}
		}
	}
	if had, isLost := a.Had(t.Context(), run); !slices.Equal(had, []string{"a", "b"}) || isLost {
		t.Errorf("at node a, the run was at %q, lost: %t", had, isLost)
	}
	if had, isLost := b.Had(t.Context(), b.Mark(madeID)); !slices.Equal(had, []string{"b"}) || !isLost {
		t.Errorf("at node b, an ID of its own was at %q, lost: %t", had, isLost)
	}
	if had, isLost := b.Had(t.Context(), madeID); had != nil || isLost {
		t.Errorf("an ID of no node was at %q, lost: %t", had, isLost)
	}
	if taken, err := a.Taken(t.Context()); err != nil || len(taken) != 1 || taken[0] != run {
		t.Errorf("node a has lost %q, %v", taken, err)
	}
	if taken, err := b.Taken(t.Context()); err != nil || len(taken) > 0 {
		t.Errorf("node b has lost %q, %v", taken, err)
	}
	sealed := a.Seal([]byte("value"), "run")
	if got, err := b.Open(sealed, "run"); err != nil || string(got) != "value" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := b.Open(sealed, "other"); err == nil {
		t.Error("a value was taken for another one")
	}
}
