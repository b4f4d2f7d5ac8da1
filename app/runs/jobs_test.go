package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// scripts is an executor whose behaviour depends on the text of the script: "wait" ends when it is
// cancelled, "hold" when the gate is opened.
type scripts struct {
	executor
	gate chan struct{}

	mu    sync.Mutex
	begun []string
}

func (s *scripts) Run(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error) {
	name, does, _ := strings.Cut(string(req.Code), ":")
	s.mu.Lock()
	s.begun = append(s.begun, name)
	s.mu.Unlock()
	req.OnStart(orchestrator.Live{})
	outcome := &orchestrator.Outcome{Envelope: orchestrator.Envelope{RunID: req.ID,
		Result: orchestrator.Result{OK: true}}, Printed: orchestrator.Printed{Stdout: name}}
	switch does {
	case "wait", "hold":
		select {
		case <-ctx.Done():
			outcome.End = orchestrator.End{ExitCode: -9, Stopped: orchestrator.StoppedByCancel}
		case <-s.gate:
		}
	case "raise":
		outcome.End.ExitCode, outcome.Envelope.Result.OK = 1, false
	case "exceed":
		outcome.End, outcome.Envelope.Result.OK = orchestrator.End{ExitCode: -9,
			Stopped: orchestrator.StoppedAtTimeout}, false
	case "flood":
		outcome.End, outcome.Stdout = orchestrator.End{ExitCode: -9, Stopped: orchestrator.StoppedAtOutput},
			strings.Repeat("x", 8<<20)
	case "break":
		return nil, errors.New("no sandbox")
	}
	return outcome, nil
}

func newJobs(t *testing.T, book *JobBook) (*Jobs, *scripts, *Registry) {
	t.Helper()
	made := &scripts{gate: make(chan struct{})}
	registry := New(made, nil)
	jobs := NewJobs(registry, &JobOptions{Book: book})
	t.Cleanup(func() {
		registry.Close()
		if err := jobs.Close(); err != nil {
			t.Error(err)
		}
	})
	return jobs, made, registry
}

func queue(t *testing.T, jobs *Jobs, who, code string) string {
	t.Helper()
	req := orchestrator.ScriptRequest(code, orchestrator.Script{Timeout: time.Minute, Stream: 1})
	req.Caller = person(who)
	id, err := jobs.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func stateOfJob(t *testing.T, jobs *Jobs, who, id string) JobState {
	t.Helper()
	status, ok := jobs.Get(t.Context(), person(who), id)
	if !ok {
		return ""
	}
	return status.State
}

// Issue 26: after a restart, a job that was shown as running was reported as queued. The book has a state before it is
// shown.
func TestAStateIsInTheBookBeforeItIsShown(t *testing.T) {
	book, err := OpenJobBook(t.Context(), filepath.Join(t.TempDir(), "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	jobs, made, _ := newJobs(t, book)
	for range 20 {
		id := queue(t, jobs, "ann", "a:hold")
		for _, want := range []JobState{JobRunning, JobSuccess} {
			for stateOfJob(t, jobs, "ann", id) != want {
				runtime.Gosched()
			}
			if got := noted(t, book, id); got != want {
				t.Fatalf("got %s in the book, want %s, which was shown", got, want)
			}
			if want == JobRunning {
				made.gate <- struct{}{}
			}
		}
	}
}

// of six jobs five run, and the sixth has its turn when one is over;
// first come, first served.
func TestFiveJobsAtOneTimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs, made, _ := newJobs(t, nil)
		var ids []string
		for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
			ids = append(ids, queue(t, jobs, "ann", name+":wait"))
		}
		synctest.Wait()
		var states []JobState
		for _, id := range ids {
			states = append(states, stateOfJob(t, jobs, "ann", id))
		}
		want := []JobState{JobRunning, JobRunning, JobRunning, JobRunning, JobRunning, JobQueued, JobQueued, JobQueued}
		if !slices.Equal(states, want) {
			t.Fatalf("got %v, want %v", states, want)
		}
		jobs.Cancel(person("ann"), ids[6]) // one that is queued gives up its place
		jobs.Cancel(person("ann"), ids[2])
		synctest.Wait()
		if got := stateOfJob(t, jobs, "ann", ids[5]) + stateOfJob(t, jobs, "ann", ids[6]) + stateOfJob(
			t, jobs, "ann", ids[7]); got != JobRunning+JobCancelled+JobQueued {
			t.Errorf("got %s, want the sixth running, the seventh cancelled and the eighth queued", got)
		}
		jobs.Cancel(person("ann"), ids[0])
		synctest.Wait()
		if first := made.begun[:5]; len(made.begun) != 7 || made.begun[5] != "6" || made.begun[6] != "8" {
			t.Errorf("got that %v began, and then %v, want 6 and 8", first, made.begun[5:])
		}
	})
}

// jobsAtOnce is the number of jobs that run concurrently.
var jobsAtOnce = int(quota.For(quota.Jobs).Total)

// maxQueued is the number of jobs that one account can queue.
var maxQueued = int(quota.For(quota.QueuedJobs).Each)

// If a caller, or its agents, which share one account, have queued many jobs, others do not wait
// until all of them are done.
func TestJobsOfAccountsHaveTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs, made, _ := newJobs(t, nil)
		agent := func(name, code string) string {
			req := orchestrator.ScriptRequest(code, orchestrator.Script{Timeout: time.Minute, Stream: 1})
			req.Caller = caller.Caller{Principal: name, Kind: caller.Agent, Session: "ses_" + name,
				Scopes: []string{caller.ScopeRun}, Registrar: "ann"}
			id, err := jobs.Start(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		var ids []string
		for n := range jobsAtOnce + maxQueued {
			ids = append(ids, agent(fmt.Sprint("agent ", n%2), fmt.Sprint(n, ":wait")))
			synctest.Wait() // the first ones begin, and are queued no more
		}
		req := orchestrator.ScriptRequest("more:wait", orchestrator.Script{Timeout: time.Minute, Stream: 1})
		req.Caller = caller.Caller{Principal: "agent 3", Kind: caller.Agent, Session: "ses_3", Registrar: "ann"}
		if _, err := jobs.Start(t.Context(), req); !errors.Is(err, ErrJobs) {
			t.Errorf("got %v for one more agent of a caller that has its share of the queue, want %v", err, ErrJobs)
		}
		queue(t, jobs, "bob", "bob 1:wait")
		queue(t, jobs, "bob", "bob 2:wait")
		queue(t, jobs, "eve", "eve:wait")
		for n := range 4 {
			jobs.Cancel(caller.Caller{Principal: fmt.Sprint("agent ", n%2), Kind: caller.Agent,
				Session: fmt.Sprint("ses_agent ", n%2), Scopes: []string{caller.ScopeRun}}, ids[n])
			synctest.Wait()
		}
		if got, want := made.begun[jobsAtOnce:], []string{"bob 1", "eve", "bob 2", "5"}; !slices.Equal(got, want) {
			t.Errorf("got that %v began, want %v", got, want)
		}
	})
}

// the final state of a job, which does not change.
func TestHowJobsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs, _, _ := newJobs(t, nil)
		for does, want := range map[string]JobState{"": JobSuccess, "raise": JobFailed, "exceed": JobTimedOut,
			"flood": JobFailed, "break": JobFailed} {
			id := queue(t, jobs, "ann", "a:"+does)
			synctest.Wait()
			for range 2 {
				if got := stateOfJob(t, jobs, "ann", id); got != want {
					t.Errorf("%q: got %s, want %s", does, got, want)
				}
			}
			if jobs.Cancel(person("ann"), id) {
				t.Errorf("%q: got that a job which is over can be cancelled", does)
			}
		}
		id := queue(t, jobs, "ann", "a:wait")
		synctest.Wait()
		if !jobs.Cancel(person("ann"), id) {
			t.Error("got that a job which goes on cannot be cancelled")
		}
		synctest.Wait()
		if got := stateOfJob(t, jobs, "ann", id); got != JobCancelled {
			t.Errorf("got %s, want %s", got, JobCancelled)
		}
	})
}

// a job is there for an hour after it is over, and not longer; one that goes on is
// there.
func TestJobsAreKeptForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs, _, _ := newJobs(t, nil)
		going, over := queue(t, jobs, "ann", "a:wait"), queue(t, jobs, "ann", "b:")
		synctest.Wait()
		time.Sleep(keepJobs - time.Second) // of the bubble's clock
		if got := stateOfJob(t, jobs, "ann", over); got != JobSuccess {
			t.Errorf("got %q within the hour, want %s", got, JobSuccess)
		}
		time.Sleep(2 * time.Second)
		if got := stateOfJob(t, jobs, "ann", over) + stateOfJob(t, jobs, "ann", going); got != JobRunning {
			t.Errorf("got %q after the hour, want the one that goes on alone", got)
		}
		if len(jobs.jobs) != 1 {
			t.Errorf("got %d jobs kept, want 1", len(jobs.jobs))
		}
	})
}

func TestJobsBelongToTheirOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs, _, registry := newJobs(t, nil)
		anns, bobs := queue(t, jobs, "ann", "a:wait"), queue(t, jobs, "bob", "b:wait")
		synctest.Wait()
		if got := stateOfJob(t, jobs, "bob", anns); got != "" || jobs.Cancel(person("bob"), anns) {
			t.Errorf("got that bob reaches a job of ann, which is %s", got)
		}
		sessionless := person("ann")
		sessionless.Session = "ses_other"
		if _, ok := jobs.Get(t.Context(), sessionless, anns); ok {
			t.Error("got that another session of ann reaches the job")
		}
		jobs.EndSession("ses_ann")
		registry.EndSession("ses_ann")
		if got := stateOfJob(t, jobs, "ann", anns) + stateOfJob(t, jobs, "bob", bobs); got != JobRunning {
			t.Errorf("got %q, want ann's gone with her session, and bob's running", got)
		}
	})
}

// If a limit is reached, new jobs are refused; kept jobs are not forgotten early.
func TestTooManyJobsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs, _, _ := newJobs(t, nil)
		first := queue(t, jobs, "ann", "a:flood")
		for range 7 {
			queue(t, jobs, "ann", "a:flood")
			synctest.Wait()
		}
		req := orchestrator.ScriptRequest("b:", orchestrator.Script{Timeout: 1, Stream: 1})
		req.Caller = person("ann")
		if _, err := jobs.Start(t.Context(), req); !errors.Is(err, ErrJobs) {
			t.Errorf("got %v, want %v", err, ErrJobs)
		}
		if got := stateOfJob(t, jobs, "ann", first); got != JobFailed {
			t.Errorf("got %q, want the first job kept", got)
		}
		for range jobsAtOnce + maxQueued {
			queue(t, jobs, "bob", "b:wait")
			synctest.Wait() // the first ones begin, and are queued no more
		}
		req.Caller = person("bob")
		if _, err := jobs.Start(t.Context(), req); !errors.Is(err, ErrJobs) {
			t.Errorf("got %v for one that has its share of the queue, want %v", err, ErrJobs)
		}
		for n := range quota.For(quota.Jobs).Queue - maxQueued {
			queue(t, jobs, fmt.Sprint("one of many ", n/maxQueued), "b:wait")
		}
		req.Caller = person("eve")
		if _, err := jobs.Start(t.Context(), req); !errors.Is(err, ErrJobs) {
			t.Errorf("got %v with a full queue, want %v", err, ErrJobs)
		}
		time.Sleep(keepJobs + time.Second)
		req.Caller = person("ann")
		jobs.EndSession("ses_bob")
		if _, err := jobs.Start(t.Context(), req); err != nil {
			t.Errorf("got %v when there is room again", err)
		}
	})
}

var canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestJobIDsAreUUIDs(t *testing.T) {
	for range 100 {
		if id := newUUID(); !canonicalUUID.MatchString(id) {
			t.Fatalf("got %s", id)
		}
	}
}

// after a restart, the caller that started a job gets the state lost; the job is not
// forgotten.
func TestARestartLosesJobsAndSaysSo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "jobs")
	open := func() *JobBook {
		t.Helper()
		book, err := OpenJobBook(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return book
	}
	made := &scripts{gate: make(chan struct{})}
	registry, book := New(made, nil), open()
	jobs := NewJobs(registry, &JobOptions{Book: book})
	going, over := queue(t, jobs, "ann", "a:hold"), queue(t, jobs, "ann", "b:")
	for noted(t, book, going) != JobRunning || noted(t, book, over) != JobSuccess {
		runtime.Gosched()
	}

	beside := open() // another process, while the first one lives
	other := NewJobs(New(made, nil), &JobOptions{Book: beside})
	if _, ok := other.Get(t.Context(), person("ann"), going); ok {
		t.Error("got another process's job, want it unknown while that lives")
	}
	// The first process is killed: its lock is free, and nothing else is done.
	if err := book.held.Release(); err != nil {
		t.Fatal(err)
	}
	again := person("ann")
	again.Session = "ses_new"
	for _, restarted := range []*Jobs{other, NewJobs(New(made, nil), &JobOptions{Book: open()})} {
		status, ok := restarted.Get(t.Context(), again, going)
		if !ok || status.State != JobLost || status.Last != JobRunning || !strings.HasPrefix(status.RunID, "run_") {
			t.Errorf("got %+v, %v, want a lost job that was running", status, ok)
		}
		if status, ok := restarted.Get(t.Context(), again, over); !ok || status.State != JobLost ||
			status.Last != JobSuccess {
			t.Errorf("got %+v, %v, want a lost job that was over", status, ok)
		}
		if _, ok := restarted.Get(t.Context(), person("bob"), going); ok {
			t.Error("got that bob sees ann's lost job")
		}
		if _, ok := restarted.Get(t.Context(), again, newUUID()); ok {
			t.Error("got a job that never was")
		}
	}
	if found, err := beside.find(t.Context(), going, time.Now().Add(2*keepJobs)); err != nil || found.id != "" {
		t.Errorf("got %+v and %v hours later, want nothing", found, err)
	}
	if _, err := os.Stat(book.lock(book.instance)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want the lock of the dead process removed", err)
	}
	close(made.gate)
	registry.Close()
	_ = jobs.Close() // its lock is gone
	for _, j := range []*Jobs{other} {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// noted returns the state that the book has of a job.
func noted(t *testing.T, book *JobBook, id string) (state JobState) {
	t.Helper()
	err := book.db.View(t.Context(), func(tx database.Tx) error {
		return tx.QueryRowContext(t.Context(), `SELECT state FROM job WHERE id = ?`, id).Scan(&state)
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}
