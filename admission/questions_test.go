package admission_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/cluster"
)

// hasQuestion fails unless a PENDING ruling has a question that people can answer, and another
// ruling has none and is a retryable refusal.
func hasQuestion(t *testing.T, dir string, r admission.Ruling) {
	t.Helper()
	if r.Decision == admission.Pending {
		if _, err := approval.Find(dir, r.ApprovalID); err != nil {
			t.Errorf("PENDING with %q: %v", r.ApprovalID, err)
		}
		return
	}
	if r.Decision != admission.Denied || r.Error == nil || !r.Error.Retryable || r.ApprovalID != "" {
		t.Errorf("got %+v, %+v, want PENDING or a retryable refusal", r, r.Error)
	}
}

func openDesk(t *testing.T) (desk *approval.Desk, dir string) {
	t.Helper()
	dir = t.TempDir()
	desk, err := approval.OpenDesk(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = desk.Close() })
	return desk, dir
}

// Issue 24, item 7: many callers announce the actions of many agents of several owners at once, each
// action several times. Whenever one of them gets PENDING, its question can be answered.
func TestCallersRaceForQuestions(t *testing.T) {
	desk, dir := openDesk(t)
	o := newOffice(t, func(opts *options) { opts.Desk, opts.Limiter, opts.Now = desk, nil, nil })
	var all []agents.Agent
	for n := range 6 {
		all = append(all, registerFor(o, fmt.Sprint("owner", n/2)))
	}
	var callers sync.WaitGroup
	var pending, refused atomic.Int32
	for range 4 {
		for _, a := range all {
			callers.Go(func() {
				for n := range 12 {
					r := o.verify(a, action("send_email", fmt.Sprint(n)), step(n+1))
					hasQuestion(t, dir, r)
					if r.Decision == admission.Pending {
						pending.Add(1)
					} else {
						refused.Add(1)
					}
				}
			})
		}
	}
	callers.Wait()
	if open := desk.Open(); open > 3*16 || open < 3*8 || pending.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d open questions of three owners, %d PENDING, %d refused", open, pending.Load(), refused.Load())
	}
}

// An agent has at most eight open questions at all nodes of a cluster together. Those of a node that has ended do not
// count.
func TestTheOpenQuestionsOfAllNodes(t *testing.T) {
	join := func(opts *options, name string) *cluster.Node {
		n, err := cluster.Join(t.Context(), opts.Database, cluster.Options{Name: name, Version: "1",
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		opts.Node = n
		return n
	}
	var first *cluster.Node
	a := newOffice(t, func(opts *options) { first = join(opts, "a") })
	b := *a
	join(&b.opts, "b")
	b.begin()
	t.Cleanup(b.end)
	agent, _ := a.register("supervised", "")
	var pending atomic.Int32
	ask := func(o *office, n int) bool {
		got := o.try(agent, action("send_email", fmt.Sprint(n)), step(n))
		if got == admission.Pending {
			pending.Add(1)
			return true
		}
		if got != admission.Denied+" "+admission.CodeManyOpen {
			t.Errorf("question %d: %s", n, got)
		}
		return false
	}
	ask(a, 1)
	ask(a, 2)
	var callers sync.WaitGroup
	for n := range 24 {
		callers.Go(func() { ask([]*office{a, &b}[n%2], n+3) })
	}
	callers.Wait()
	next := 27
	for ; ask(a, next) || ask(&b, next+1); next += 2 { // those at once may have refused each other
	}
	if got := pending.Load(); got != 8 {
		t.Fatalf("%d questions of the agent are open, want 8", got)
	}
	(<-a.person.questions).answer <- approval.Verdict{Answer: approval.Yes, By: "ann"}
	for !ask(&b, next) && t.Context().Err() == nil { // until the answer is stored
	}
	if ask(a, next+1) || ask(&b, next+1) {
		t.Error("one answer lets the agent ask two questions")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if !ask(&b, next+1) {
		t.Error("questions of a node that has ended count")
	}
}

// registerFor registers a supervised agent for an owner.
func registerFor(o *office, owner string) agents.Agent {
	o.Helper()
	r, err := agents.ParseRegistration([]byte(`{"name": "a", "type": "supervised", "principal_id": "` + owner + `"}`))
	if err != nil {
		o.Fatal(err)
	}
	a, _, err := o.Register(o.Context(), r, owner)
	if err != nil {
		o.Fatal(err)
	}
	return a
}

// brokenDesk opens no question while it is broken. It waits for all announced callers before it says
// so.
type brokenDesk struct {
	approval.Reserver
	broken  atomic.Bool
	opening chan struct{} // receives when a question is being opened
	fail    chan struct{} // closed to let it fail
}

type brokenReservation struct {
	approval.Reservation
	desk *brokenDesk
}

func (d *brokenDesk) Reserve(account string) (approval.Reservation, error) {
	r, err := d.Reserver.Reserve(account)
	return &brokenReservation{r, d}, err
}

func (r *brokenReservation) Open(q approval.Question) (func(context.Context) (approval.Verdict, error), error) {
	if r.desk.broken.Load() {
		r.desk.opening <- struct{}{}
		<-r.desk.fail
		r.Release()
		return nil, errors.New("no space left on device")
	}
	return r.Reservation.Open(q)
}

// Issue 24, item 7: a question that cannot be opened, such as on a full disk, is nobody's PENDING, and
// the same step can be tried again.
func TestAQuestionThatCannotBeOpenedIsNotPending(t *testing.T) {
	desk, dir := openDesk(t)
	broken := &brokenDesk{Reserver: desk, opening: make(chan struct{}, 100), fail: make(chan struct{})}
	broken.broken.Store(true)
	o := newOffice(t, func(opts *options) { opts.Desk, opts.Limiter, opts.Now = broken, nil, nil })
	a, _ := o.register("supervised", "")
	mail := action("send_email", "hello")
	var callers sync.WaitGroup
	callers.Go(func() { hasQuestion(t, dir, o.verify(a, mail, step(1))) })
	<-broken.opening
	for range 8 { // while it is being opened
		callers.Go(func() { hasQuestion(t, dir, o.verify(a, mail, step(1))) })
	}
	close(broken.fail)
	callers.Wait()
	broken.broken.Store(false)
	r := o.verify(a, mail, step(1))
	if r.Decision != admission.Pending {
		t.Errorf("got %+v %+v, want PENDING", r, r.Error)
	}
	hasQuestion(t, dir, r)
	if desk.Open() != 1 {
		t.Errorf("%d questions are open, want 1", desk.Open())
	}
	entries, err := agents.Activity(o.logDir, a.ID, audit.Period{}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, e := range entries {
		if e.Decision == admission.Denied {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("no refusal is recorded: %+v", entries)
	}
}

// Issue 24, item 7: a restart ends all questions, frees the share of their owner, and what is announced
// again has a new question.
func TestARestartFreesTheShareOfAnOwner(t *testing.T) {
	desk, dir := openDesk(t)
	o := newOffice(t, func(opts *options) { opts.Desk, opts.Limiter, opts.Now = desk, nil, nil })
	all := []agents.Agent{registerFor(o, "ann"), registerFor(o, "ann"), registerFor(o, "ann")}
	seen := map[string]bool{}
	for round := range 3 {
		asked := 0
		for n := range 30 {
			r := o.verify(all[n%3], action("send_email", fmt.Sprint(n)), step(n+1))
			hasQuestion(t, dir, r)
			if r.Decision != admission.Pending {
				continue
			}
			if asked++; seen[r.ApprovalID] {
				t.Errorf("round %d: the ended question %s is used again", round, r.ApprovalID)
			}
			seen[r.ApprovalID] = true
		}
		if asked != 16 {
			t.Errorf("round %d: %d questions, want the owner's share of 16", round, asked)
		}
		if o.restart(); desk.Open() != 0 {
			t.Errorf("round %d: %d questions outlive the service", round, desk.Open())
		}
	}
}
