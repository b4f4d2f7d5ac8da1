package approval

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// Both stores of grants return what was added until it ends, is replaced or is removed (issue 28).
func TestGrantStores(t *testing.T) {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), SchemaGrants)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for name, store := range map[string]grantStore{"in memory": &grantMemory{}, "in the database": grantRows{db}} {
		t.Run(name, func(t *testing.T) { checkGrantStore(t, store) })
	}
}

func checkGrantStore(t *testing.T, store grantStore) {
	ctx, now := t.Context(), time.UnixMilli(1_800_000_000_000).UTC()
	grant := func(i int, key string, lasts time.Duration) Grant {
		return Grant{ID: fmt.Sprintf("grant_%d", i), Given: now, Until: now.Add(lasts), For: "session", By: "ann",
			Asking: Asking{Principal: "bob", SessionID: "ses_1", RunID: "run_1"}, ServerID: "s", ToolName: "t",
			key: key,
			approvers: []caller.Caller{{Principal: "ann", Kind: caller.User, Roles: []string{"oncall"},
				Credentials: []caller.Credential{{ID: "tok_1", Scopes: []string{"approve"}}}}},
			extent: Extent{Reach: ThisSession}}
	}
	found := func(at time.Time, keys ...string) (ids []string) {
		list, err := store.find(ctx, at, keys...)
		if err != nil {
			t.Error(err)
		}
		for _, g := range list {
			ids = append(ids, g.ID)
		}
		slices.Sort(ids)
		return ids
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	add := func(g Grant) {
		t.Helper()
		if err := store.add(ctx, g, g.Given); err != nil {
			t.Fatal(err)
		}
	}
	check("nothing", found(now))
	add(grant(1, "a", time.Minute))
	add(grant(2, "b", time.Hour))
	add(grant(3, "c", time.Hour))
	check("all", found(now), "grant_1", "grant_2", "grant_3")
	check("two keys", found(now, "a", "c", "x"), "grant_1", "grant_3")
	check("an hour later", found(now.Add(time.Hour)))
	want := []Grant{grant(1, "a", time.Minute)}
	if list, err := store.find(ctx, now, "a"); err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("got %+v, %v", list, err)
	}
	add(grant(4, "b", time.Hour))
	check("one replaced", found(now), "grant_1", "grant_3", "grant_4")
	var using sync.WaitGroup
	for range 8 {
		using.Go(func() {
			if there, err := store.use(ctx, "grant_4", 2); !there || err != nil {
				t.Errorf("using a grant: %t, %v", there, err)
			}
		})
	}
	using.Wait()
	if list, err := store.find(ctx, now, "b"); err != nil || len(list) != 1 || list[0].Used != 16 {
		t.Errorf("after 16 calls: %+v, %v", list, err)
	}
	removed, _ := store.remove(ctx, "grant_4")
	again, err := store.remove(ctx, "grant_4")
	used, useErr := store.use(ctx, "grant_4", 1)
	if !removed || again || used || err != nil || useErr != nil {
		t.Errorf("removing a grant: %t, again %t (%v), used afterwards %t (%v)", removed, again, err, used, useErr)
	}
	for i := range maxGrants {
		add(grant(100+i, fmt.Sprint("key ", i), 2*time.Hour))
	}
	if ids := found(now); len(ids) != maxGrants || slices.Contains(ids, "grant_1") || slices.Contains(ids, "grant_3") {
		t.Errorf("%d grants, with those that end first: %t", len(ids), slices.Contains(ids, "grant_1"))
	}
}

// Issue 28: a grant covers calls of all nodes, and is listed and withdrawn at each.
func TestAGrantOfAnotherNode(t *testing.T) {
	a, b := sharedDesks(t)
	q := sharedQuestion(1, Grounds{})
	verdicts := make(chan Verdict, 1)
	ask := func(d *Desk, q Question) {
		v, err := d.Ask(context.Background(), q)
		if err != nil {
			t.Error(err)
		}
		verdicts <- v
	}
	go ask(a, q)
	posted := find(t, b, q.ID)
	if err := b.Answer(Response{ID: q.ID, Digest: posted.Digest, Approve: true, By: "bob, console",
		For: Extent{Reach: ThisSession}, Person: Person{"bob", true, nil},
		Approver: &caller.Caller{Principal: "bob", Kind: caller.User, Session: "ses_2"}}); err != nil {
		t.Fatal(err)
	}
	if v := <-verdicts; v.Answer != Yes || v.ByGrant {
		t.Fatalf("the answer: %+v", v)
	}
	for i, d := range []*Desk{a, b} {
		further := sharedQuestion(2+i, Grounds{})
		further.RunID = fmt.Sprint("run_", i)
		ask(d, further)
		if v := <-verdicts; v.Answer != Yes || !v.ByGrant {
			t.Errorf("a further call of node %d: %+v", i, v)
		}
	}
	list, err := b.Grants(t.Context())
	if err != nil || len(list) != 1 || list[0].Used != 2 || len(list[0].Object().Givers) != 1 {
		t.Fatalf("node b lists %+v, %v", list, err)
	}
	withdrawn, err := b.Withdraw(t.Context(), list[0].ID, "bob", func(Grant) bool { return true })
	if !withdrawn || err != nil {
		t.Errorf("withdrawing it at node b: %t, %v", withdrawn, err)
	}
	later := sharedQuestion(5, Grounds{})
	later.Expires = time.Now()
	ask(a, later)
	if v := <-verdicts; v.Answer != Expired {
		t.Errorf("a call of node a afterwards: %+v", v)
	}
}

// A call is asked about if the database with the grants does not answer.
func TestGrantsAreAway(t *testing.T) {
	a, _ := sharedDesks(t)
	s := a.shared.Load()
	q := sharedQuestion(1, Grounds{})
	g, ok := a.grantOf(q, Verdict{Answer: Yes, For: Extent{Reach: ThisRun}})
	if !ok {
		t.Fatal("no grant")
	}
	if err := a.store().add(t.Context(), g, g.Given); err != nil {
		t.Fatal(err)
	}
	if _, ok := a.granted(t.Context(), &q); !ok {
		t.Error("the grant does not cover the call")
	}
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	if v, ok := a.granted(t.Context(), &q); ok {
		t.Errorf("without the database: %+v", v)
	}
	if list, err := a.Grants(t.Context()); err == nil {
		t.Errorf("without the database: %v", list)
	}
	if _, err := a.Withdraw(t.Context(), g.ID, "ann", func(Grant) bool { return true }); err == nil {
		t.Error("without the database, the grant was withdrawn")
	}
}
