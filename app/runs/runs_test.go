package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// executor is an Executor whose behaviour depends on the code. "wait" ends when it is cancelled;
// "queue" does too, without a sandbox. "break" fails before the run starts, and "refuse" is
// rejected by Check. Any other code is returned as the result.
type executor struct {
	mu    sync.Mutex
	ended []string // sessions
}

func (e *executor) Check(req orchestrator.Request) error {
	if string(req.Code) == "refuse" {
		return &orchestrator.InputError{Problem: "no"}
	}
	return nil
}

func (e *executor) Run(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error) {
	code := string(req.Code)
	switch code {
	case "break":
		return nil, errors.New("no sandbox")
	case "queue":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	req.OnStart(orchestrator.Live{Printed: func() orchestrator.Printed {
		return orchestrator.Printed{Stdout: "so far"}
	},
		Calls: func() int { return 2 }})
	if code == "wait" {
		<-ctx.Done()
		code = "cancelled"
	}
	data, err := json.Marshal(code)
	return &orchestrator.Outcome{
		Envelope: orchestrator.Envelope{RunID: req.ID, Result: orchestrator.Result{OK: true, Data: data}},
		Printed:  orchestrator.Printed{Stdout: "in all"},
	}, err
}

func (e *executor) EndSession(session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = append(e.ended, session)
}

func person(name string) caller.Caller {
	return caller.Caller{Principal: name, Kind: caller.Local, Session: "ses_" + name}
}

func start(t *testing.T, r *Registry, who, code string) *Run {
	t.Helper()
	run, err := r.Start(t.Context(), orchestrator.Request{Language: "python", Code: []byte(code), Caller: person(who)})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// looked receives the signal that a run has started, unless it started before the subscription.
func looked(changed <-chan struct{}) {
	select {
	case <-changed:
	default:
	}
}

func ids(list []*Run) []string {
	var out []string
	for _, run := range list {
		out = append(out, run.ID())
	}
	return out
}

func TestARunFromStartToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(&executor{}, nil)
		run := start(t, r, "ann", "wait")
		changed, stop := run.Subscribe()
		defer stop()
		synctest.Wait()
		looked(changed)
		status := run.Status()
		if status.State != Running || status.Owner != person("ann").Owner() || run.Printed().Stdout != "so far" {
			t.Errorf("got %+v, printed %+v, want a run of ann that goes on", status, run.Printed())
		}
		if !r.Cancel(person("ann"), run.ID()) {
			t.Error("got that the run cannot be cancelled")
		}
		outcome, err := run.Wait(t.Context())
		if err != nil || string(outcome.Envelope.Result.Data) != `"cancelled"` || outcome.Envelope.RunID != run.ID() {
			t.Errorf("got %+v and %v, want the outcome", outcome, err)
		}
		<-changed
		if run.Printed().Stdout != "in all" {
			t.Errorf("got printed %+v, want all", run.Printed())
		}
		if r.Cancel(person("ann"), run.ID()) {
			t.Error("got that a finished run was cancelled")
		}
	})
}

func TestARunThatNeverBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(&executor{}, nil)
		queued := start(t, r, "ann", "queue")
		synctest.Wait()
		if got := queued.Status(); got.State != Queued || !got.Began.IsZero() {
			t.Errorf("got %+v, want a queued run", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := queued.Wait(ctx); !errors.Is(err, ErrCancelled) {
			t.Errorf("got %v, want %v", err, ErrCancelled)
		}
		broken := start(t, r, "ann", "break")
		if _, err := broken.Wait(t.Context()); err == nil || errors.Is(err, ErrCancelled) ||
			broken.Status().Err == nil {
			t.Errorf("got %v, want the reason", err)
		}
		for name, req := range map[string]orchestrator.Request{
			"no request":   {Code: []byte("refuse"), Caller: person("ann")},
			"nobody":       {Code: []byte("x")},
			"no session":   {Code: []byte("x"), Caller: caller.Caller{Principal: "ann", Kind: caller.Local}},
			"no principal": {Code: []byte("x"), Caller: caller.Caller{Kind: caller.Local, Session: "s"}},
		} {
			if run, err := r.Start(t.Context(), req); err == nil {
				t.Errorf("%s: got run %s, want an error", name, run.ID())
			}
		}
		if _, err := r.Start(ctx, orchestrator.Request{Code: []byte("x"), Caller: person("ann")}); err == nil {
			t.Error("got a run of a request that is over, want an error")
		}
	})
}

func TestRunsAreSeenByTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(&executor{}, nil)
		defer r.Close()
		operator := person("olga")
		operator.Scopes = []string{caller.ScopeRun, caller.ScopeAllRuns}
		var all []string
		for range 3 {
			for _, who := range []string{"ann", "bob"} {
				all = append(all, start(t, r, who, "wait").ID())
				time.Sleep(time.Second) // on the bubble's clock: the list is by time
			}
		}
		if got := ids(r.List(operator)); !slices.Equal(got, all) {
			t.Errorf("got %v for the operator, want %v", got, all)
		}
		if got := ids(r.List(person("bob"))); !slices.Equal(got, []string{all[1], all[3], all[5]}) {
			t.Errorf("got %v for bob, want the second of each two of %v", got, all)
		}
		if got := r.List(person("eve")); got != nil {
			t.Errorf("got %v for eve, want none", ids(got))
		}
		if _, ok := r.Get(person("bob"), all[0]); ok || r.Cancel(person("bob"), all[0]) {
			t.Error("got that bob reaches a run of ann")
		}
		if !r.Cancel(operator, all[0]) {
			t.Error("got that the operator cannot cancel a run")
		}
	})
}

func TestASessionTakesItsRunsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &executor{}
		r := New(made, nil)
		going, done, other := start(t, r, "ann", "wait"), start(t, r, "ann", "x"), start(t, r, "bob", "wait")
		<-done.Done()
		r.EndSession("ses_ann")
		if !going.over() {
			t.Error("got a run that goes on after its session")
		}
		if got := r.List(person("ann")); got != nil {
			t.Errorf("got %v, want none left", ids(got))
		}
		if other.over() || !slices.Equal(made.ended, []string{"ses_ann"}) {
			t.Errorf("got bob's run over: %v, and sessions ended: %v, want only ann's", other.over(), made.ended)
		}
		r.Close()
		if !other.over() {
			t.Error("got a run that goes on after Close")
		}
		if _, err := r.Start(t.Context(), orchestrator.Request{Code: []byte("x"), Caller: person("ann")}); !errors.Is(
			err, ErrClosed) {
			t.Errorf("got %v, want %v", err, ErrClosed)
		}
		r.Close()
	})
}

func TestFinishedRunsAreLetGoOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(&executor{}, nil)
		defer r.Close()
		going := start(t, r, "ann", "wait")
		quiet := start(t, r, "bob", "x")
		<-quiet.Done()
		var last *Run
		for range 3 * maxOwnedRuns {
			last = start(t, r, "ann", "x")
			<-last.Done()
		}
		if got := len(r.List(person("ann"))); got != maxOwnedRuns+1 {
			t.Errorf("got %d runs of ann, want her %d last ones and the one that goes on", got, maxOwnedRuns)
		}
		for _, run := range []*Run{going, last} {
			if _, ok := r.Get(person("ann"), run.ID()); !ok {
				t.Errorf("got that %s is gone, want it kept", run.Status().State)
			}
		}
		if _, ok := r.Get(person("bob"), quiet.ID()); !ok {
			t.Error("got that bob's run is gone, want another's runs to leave it alone")
		}
		time.Sleep(time.Second) // of the bubble's clock: the list is in order of time
		large := start(t, r, "ann", strings.Repeat("x", maxOwnedBytes+1))
		<-large.Done()
		if got := ids(r.List(person("ann"))); !slices.Equal(got, []string{going.ID(), large.ID()}) {
			t.Errorf("got %d runs of ann, want the one that goes on and the large one", len(got))
		}
		time.Sleep(KeepFinished + time.Second)
		if got := append(r.List(person("ann")), r.List(person("bob"))...); len(got) != 1 || got[0] != going {
			t.Errorf("got %v after an hour, want the one that goes on", ids(got))
		}
		if held := r.finished; len(held.order)+len(held.owned)+held.total.runs+held.total.bytes != 0 {
			t.Errorf("got %+v, want nothing counted any more", held)
		}
	})
}

// The finished runs of all callers together are bounded, and the runs of the caller with the most
// are evicted first.
func TestAllOwnersTogetherAreBounded(t *testing.T) {
	var kept retained
	now := time.Now()
	newFinished := func(who string, bytes int) *Run {
		run := newRun(orchestrator.Request{ID: who, Caller: person(who)}, func() {}, now)
		run.outcome = &orchestrator.Outcome{Printed: orchestrator.Printed{Stdout: strings.Repeat("x", bytes)}}
		return run
	}
	small := newFinished("small", 1)
	kept.add(small, now)
	for i := range 4 * maxRetainedRuns {
		kept.add(newFinished(fmt.Sprint("caller", i%(2*maxRetainedRuns/maxOwnedRuns)), 3<<16), now)
		kept.excess()
		if kept.total.runs > maxRetainedRuns || kept.total.bytes > maxRetainedBytes {
			t.Fatalf("after %d: got %+v kept", i, kept.total)
		}
	}
	if kept.order[0].run != small {
		t.Error("got the small caller's run pushed out, want those that hold more to give way")
	}
}

type answers chan approval.Verdict

func (a answers) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	if q.ID != "apr_waits" { // for the capacity to be asked
		approval.Opened(ctx)
	}
	select {
	case v := <-a:
		return v, nil
	case <-ctx.Done():
		return approval.Verdict{}, ctx.Err()
	}
}

func TestARunSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(answers)
		questions := NewQuestions(next)
		r := New(&executor{}, &Options{Questions: questions})
		defer r.Close()
		run, other := start(t, r, "ann", "wait"), start(t, r, "ann", "wait")
		changed, stop := run.Subscribe()
		defer stop()
		synctest.Wait()
		looked(changed)
		var asking sync.WaitGroup
		ask := func(id, runID string) {
			asking.Go(func() {
				q := approval.Question{ID: id, Asking: approval.Asking{RunID: runID},
					Subject: approval.Subject{Code: "secret"}}
				if v, err := questions.Ask(t.Context(), q); err != nil || v.Answer != approval.Yes {
					t.Errorf("%s: got %v and %v, want the answer of those who are asked", id, v, err)
				}
			})
			synctest.Wait()
		}
		ask("apr_1", run.ID())
		ask("apr_2", run.ID())
		ask("apr_waits", run.ID())
		ask("apr_3", "run_of_nobody")
		<-changed
		open := run.Status().Questions
		if len(open) != 2 || open[0].ID != "apr_1" || open[1].ID != "apr_2" || open[0].Code != "" {
			t.Errorf("got questions %+v, want those that can be answered, without the code", open)
		}
		if got := other.Status().Questions; len(got) != 0 {
			t.Errorf("got questions %+v of the other run, want none", got)
		}
		for range 4 {
			next <- approval.Verdict{Answer: approval.Yes}
		}
		asking.Wait()
		if status := run.Status(); len(status.Questions) != 0 {
			t.Errorf("got %+v, want no question left", status)
		}
	})
}

// A subscriber that reads the status after each signal sees every change.
func TestSubscribersMissNothing(t *testing.T) {
	run := newRun(orchestrator.Request{Caller: person("ann")}, func() {}, time.Now())
	changed, stop := run.Subscribe()
	defer stop()
	go func() {
		for i := range 1000 {
			run.ask(approval.Question{ID: fmt.Sprint(i)}, true)
		}
		run.finish(nil, errors.New("over"), time.Now())
	}()
	for range changed {
		if run.Status().State == Done {
			return
		}
	}
}
