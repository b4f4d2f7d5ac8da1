package cluster_test

import (
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
)

// issue 28: a value ends when its time is over, its node withdraws it, or the node does not answer.
func TestValuesOfANode(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	foreign := options("c")
	foreign.Keys = cluster.Keys{[]byte("another key")}
	c, err := cluster.Join(t.Context(), db, foreign)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	share := func(name string, keep time.Duration) {
		t.Helper()
		for range 2 { // it may be shared again
			if err := a.Share(t.Context(), name, []byte("the value"), keep); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(n *cluster.Node, name, want string) {
		t.Helper()
		if got, known := n.Shared(t.Context(), name); string(got) != want || known != (want != "") {
			t.Errorf("%s at %s: got %q, want %q", name, n.Name(), got, want)
		}
	}
	share("one", time.Hour)
	share("over", 0)
	want(b, "one", "the value")
	want(c, "one", "")
	want(b, "over", "")
	want(b, "other", "")
	change := func(query string) {
		t.Helper()
		if err := db.Update(t.Context(), func(tx database.Tx) error {
			_, err := tx.ExecContext(t.Context(), query)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	share("two", time.Hour)
	change("UPDATE node_value SET value = (SELECT value FROM node_value WHERE name = 'one') WHERE name = 'two'")
	want(b, "two", "") // a value is bound to its name
	if err := a.Withdraw(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	want(b, "one", "")
	share("three", time.Hour)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want(b, "three", "")
}
