package trust_test

import (
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// issue 28: a content that was confirmed at one node counts at all, until another one of its file is confirmed.
func TestASharedConfirmation(t *testing.T) {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), trust.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	first := trust.Content{File: "/etc/airlock.yaml", Text: []byte("a: 1"), Policies: []trust.Part{{"p", []byte("x")}}}
	second, elsewhere := first, first
	second.Policies = []trust.Part{{"p", []byte("y")}}
	elsewhere.File = "/etc/other.yaml"
	check := func(when string, c trust.Content, want string) {
		t.Helper()
		by, found, err := trust.Shared(t.Context(), db, c)
		if err != nil || found != (want != "") || by != want {
			t.Errorf("%s: got %q, %t, %v, want %q", when, by, found, err, want)
		}
	}
	share := func(c trust.Content, by string) {
		t.Helper()
		if err := trust.Share(t.Context(), db, c, by); err != nil {
			t.Fatal(err)
		}
	}
	check("at first", first, "")
	share(first, "ann")
	check("confirmed", first, "ann")
	check("other policies", second, "")
	check("another file", elsewhere, "")
	share(second, "bob")
	check("the earlier content", first, "")
	check("the later content", second, "bob")
	if err := trust.ForgetShared(t.Context(), db, first.File); err != nil {
		t.Fatal(err)
	}
	check("forgotten", second, "")
}
