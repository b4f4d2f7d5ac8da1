package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/cluster"
)

// issue 28: a program of a host without sessions begins at the node that has its files, as long as that node stays.
func TestASessionHasAHome(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	first, second := serve(t, a, describe(a)), serve(t, b, describe(b))
	begins := func(want string) {
		t.Helper()
		for _, at := range []*served{first, second} {
			if _, text := at.get(t, "new&session=ses_1", nil); !strings.HasPrefix(text, want) {
				t.Errorf("at %s: %s, want %s", at.Name(), text, want)
			}
		}
	}
	keep := func(n *cluster.Node, want error) {
		t.Helper()
		if err := n.Keep(t.Context(), "ses_1"); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", n.Name(), err, want)
		}
	}
	at := func(s *served) string {
		_, text := s.get(t, "new&session=ses_2", nil)
		return text[:1]
	}
	keep(b, nil)
	begins("b")
	keep(a, cluster.ErrElsewhere)
	keep(b, nil)
	if err := a.Release(t.Context(), "ses_1"); err != nil { // it is not a's
		t.Fatal(err)
	}
	begins("b")
	if got := at(first) + at(second); got != "ab" {
		t.Errorf("another session begins at %s", got)
	}
	if err := b.Release(t.Context(), "ses_1"); err != nil {
		t.Fatal(err)
	}
	keep(a, nil)
	begins("a")
	a.Leave(t.Context())
	keep(b, nil)
	begins("b")
}

// The next process of a node has none of the files of the former one.
func TestAHomeEndsWithItsProcess(t *testing.T) {
	db := open(t)
	a, b := join(t, db, "a"), join(t, db, "b")
	if err := a.Keep(t.Context(), "ses_1"); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	join(t, db, "a")
	var homes int
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM session_home", nil, &homes); err != nil || homes != 0 {
		t.Errorf("%d homes, %v", homes, err)
	}
	if err := b.Keep(t.Context(), "ses_1"); err != nil {
		t.Error(err)
	}
}
