package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/policies"
)

// sharedDesks returns the desks of two nodes of one cluster, perhaps with an escalation.
func sharedDesks(t *testing.T, escalation ...Escalation) (a, b *Desk) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	open := func(name string) *Desk {
		db, err := databasetest.Open(t.Context(), path,
			cluster.Schema+cluster.SchemaAddresses+cluster.SchemaLoads+cluster.SchemaHomes+Schema+SchemaGrants)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		n, err := cluster.Join(t.Context(), db, cluster.Options{Name: name, Version: "1",
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		opts := &Options{InForce: func(caller.Caller) bool { return true }}
		for _, e := range escalation {
			opts.Escalation = e
		}
		d, err := OpenDesk(filepath.Join(t.TempDir(), "approvals"), opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		t.Cleanup(d.Share(t.Context(), db, n.ID()))
		return d
	}
	return open("a"), open("b")
}

func sharedQuestion(n int, grounds Grounds) Question {
	now := time.Now().Truncate(time.Second)
	return Question{ID: fmt.Sprintf("apr_%032x", n), Asked: now, Expires: now.Add(time.Hour),
		Asking:  Asking{Principal: "ann", SessionID: "ses_1", RunID: "run_1", CallID: "call_1"},
		Subject: Subject{ServerID: "s", ToolName: "t", Arguments: []byte(`{"text": "\u0000 <é>"}`)}, Grounds: grounds}
}

// find waits until a desk shows a question.
func find(t *testing.T, d *Desk, id string) (q Posted) {
	t.Helper()
	testenv.Await(t, "question "+id, func() bool {
		var err error
		q, _, err = d.Find(id)
		return err == nil
	})
	return q
}

// Issue 31: another node knows that a question was escalated, and which tokens ask.
func TestAnEscalatedQuestionOfAnotherNode(t *testing.T) {
	a, b := sharedDesks(t, Escalation{After: time.Millisecond, Role: "oncall"})
	q := sharedQuestion(1, Grounds{})
	q.Credentials = "tok_1 tok_2"
	verdicts := make(chan Verdict, 1)
	go func() {
		v, _ := a.Ask(context.Background(), q)
		verdicts <- v
	}()
	testenv.Await(t, "the escalation", func() bool { return find(t, b, q.ID).Escalated != "" })
	found := find(t, b, q.ID)
	_, asking, err := b.Find(q.ID)
	if err != nil || asking.Roles != "oncall" || found.Credentials != q.Credentials {
		t.Errorf("got %+v, %+v, %v", found, asking, err)
	}
	own := Response{ID: q.ID, Digest: found.Digest, Approve: true, Person: Person{Roles: []string{"oncall"}},
		Approver: &caller.Caller{Principal: "eve", Kind: caller.User,
			Credentials: []caller.Credential{{ID: "tok_2"}}}}
	if err := b.Answer(own); !errors.Is(err, ErrOwn) {
		t.Errorf("a Yes with a token that asks: got %v", err)
	}
	bob := Person{Name: "bob", Roles: []string{"oncall"}}
	if err := b.Answer(Response{ID: q.ID, Digest: found.Digest, Approve: true, By: "bob", Person: bob}); err != nil {
		t.Error(err)
	}
	if v := <-verdicts; v.Answer != Yes || v.By != "bob" {
		t.Errorf("got %+v", v)
	}
}

// issue 28: a question that one node asks is answered at another, exactly once.
func TestAQuestionOfAnotherNode(t *testing.T) {
	a, b := sharedDesks(t)
	q := sharedQuestion(1, Grounds{})
	verdicts := make(chan Verdict, 1)
	go func() {
		v, err := a.Ask(context.Background(), q)
		if err != nil {
			t.Error(err)
		}
		verdicts <- v
	}()
	posted := find(t, b, q.ID)
	if own := find(t, a, q.ID); own.Digest != posted.Digest || Text(own.Question) != Text(posted.Question) {
		t.Errorf("node b shows another question:\n%s\n%s", Text(own.Question), Text(posted.Question))
	}
	if list := b.Posted(); len(list) != 1 || list[0].ID != q.ID {
		t.Errorf("node b lists %v", list)
	}
	yes := Response{ID: q.ID, Digest: posted.Digest, Approve: true, By: "bob, console",
		Person: Person{"bob", true, nil},
		Approver: &caller.Caller{Principal: "bob", Kind: caller.User, Scopes: []string{"approve"},
			Credentials: []caller.Credential{{ID: "tok_1", Scopes: []string{"approve"}}}}}
	changed := yes
	changed.Digest = "sha256:0"
	if err := b.Answer(changed); !errors.Is(err, ErrChanged) {
		t.Errorf("an answer to another text: %v", err)
	}
	var wait sync.WaitGroup
	results := make([]error, 6)
	for i, d := range []*Desk{a, b, a, b, a, b} {
		wait.Go(func() { results[i] = d.Answer(yes) })
	}
	wait.Wait()
	taken := 0
	for _, err := range results {
		switch {
		case err == nil:
			taken++
		case !errors.Is(err, ErrClosed):
			t.Errorf("a later answer: %v", err)
		}
	}
	v := <-verdicts
	if taken != 1 || v.Answer != Yes || v.By != yes.By || len(v.Approvers) != 1 || v.Approvers[0].Principal != "bob" {
		t.Errorf("%d answers were taken, verdict %v %v", taken, v, v.Approvers)
	}
	testenv.Await(t, "the question is closed", func() bool { return len(b.Posted()) == 0 })
	if _, _, err := b.Find(q.ID); !errors.Is(err, ErrClosed) || err.Error() != "the question was answered already: "+
		"approved by bob, console" {
		t.Errorf("the closed question: %v", err)
	}
}

// Two people approve at two nodes. The rules about them are those of the node that asks.
func TestPeopleAtTwoNodesAgree(t *testing.T) {
	a, b := sharedDesks(t)
	q := sharedQuestion(2, Grounds{Approve: []string{policies.Owner}, People: 2})
	verdicts := make(chan Verdict, 1)
	go func() {
		v, err := a.Ask(context.Background(), q)
		if err != nil {
			t.Error(err)
		}
		verdicts <- v
	}()
	posted := find(t, b, q.ID)
	yes := func(name string, owner bool) Response {
		return Response{ID: q.ID, Digest: posted.Digest, Approve: true, By: name, Person: Person{name, owner, nil}}
	}
	if err := b.Answer(yes("eve", false)); !errors.Is(err, ErrNotAsked) {
		t.Errorf("one who is not asked: %v", err)
	}
	if err := b.Answer(yes("", true)); !errors.Is(err, ErrNoPerson) {
		t.Errorf("a token without a person: %v", err)
	}
	if err := b.Answer(yes("bob", true)); err != nil {
		t.Error(err)
	}
	if err := b.Answer(yes("bob", true)); !errors.Is(err, ErrAgreed) {
		t.Errorf("the same person: %v", err)
	}
	const progress = "approved by bob, waits for another person"
	testenv.Await(t, progress, func() bool { return find(t, b, q.ID).Progress == progress })
	if err := a.Answer(yes("ann", true)); err != nil {
		t.Error(err)
	}
	if v := <-verdicts; v.Answer != Yes || v.By != "bob; ann" {
		t.Errorf("verdict %v", v)
	}
}

// An answer that the asking node does not take is withdrawn, so that it cannot count later.
func TestAnAnswerToAStoppedNodeIsWithdrawn(t *testing.T) {
	a, b := sharedDesks(t)
	q := sharedQuestion(3, Grounds{})
	verdicts := make(chan Verdict, 1)
	go func() {
		v, _ := a.Ask(context.Background(), q) // the verdict shows an error
		verdicts <- v
	}()
	yes := Response{ID: q.ID, Digest: find(t, b, q.ID).Digest, Approve: true, By: "bob",
		Person: Person{"bob", true, nil}}
	stopped := a.shared.Load()
	stopped.stop()
	b.shared.Load().timeout = 3 * shareInterval
	if err := b.Answer(yes); !errors.Is(err, errNoNode) {
		t.Errorf("an answer to a stopped node: %v", err)
	}
	t.Cleanup(a.Share(t.Context(), stopped.db, stopped.node))
	b.shared.Load().timeout = resultTimeout
	if err := b.Answer(Response{ID: q.ID, Digest: yes.Digest, By: "bob"}); err != nil {
		t.Error(err)
	}
	if v := <-verdicts; v.Answer != No {
		t.Errorf("verdict %v: the withdrawn answer counted", v)
	}
}
