package runs

import (
	"context"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// State is the state of a run.
type State string

// The states of a run, in their order. A run that waits for a person is running.
const (
	Queued  State = "queued"  // no sandbox is free for it yet, or its stored state is being checked
	Running State = "running" // its code is in a sandbox
	Done    State = "done"    // its outcome, or its error, is known
)

// Status is a run at one moment.
type Status struct {
	ID         string
	Owner      caller.Owner
	Language   string
	Background bool
	State      State
	Suspended  time.Time // since when its sandbox is suspended; zero if it is not
	Durable    bool      // it is suspended, and survives the process
	Restored   bool      // a process before this one has begun it
	Asked      time.Time // when it was requested
	Began      time.Time // when it got its sandbox; zero while it is queued
	Ended      time.Time // zero while it is not done
	// Questions are those that wait for a person, the oldest first.
	Questions []approval.Question
	// Outcome and Err are nil until the run is done; then one of them is set.
	// Err is why the request could not become a run.
	Outcome *orchestrator.Outcome
	Err     error
	// Cancelled reports that the run was cancelled, and has no result of its code for that reason.
	Cancelled bool
}

// Run is one run of the registry. Its methods are safe for concurrent use.
type Run struct {
	id         string
	owner      caller.Owner
	language   string
	background bool
	asked      time.Time
	cancel     context.CancelFunc
	done       chan struct{} // closed when the run is done

	mu         sync.Mutex // guards what follows
	code       []byte     // nil when the run is done
	state      State
	suspension suspension
	span       span
	questions  []approval.Question
	live       orchestrator.Live // zero before the run has begun and when it is done
	ending
	subscribers map[chan struct{}]bool
}

// ending is how a run ended.
type ending struct {
	cancelled bool // it was cancelled before it was done
	outcome   *orchestrator.Outcome
	err       error
}

// suspension is whether a run waits without a sandbox.
type suspension struct {
	since      time.Time // zero if it does not
	durable    bool      // it survives the process
	anySession bool      // the session that began the run has ended: its principal reaches it from every session
	restored   bool      // a process before this one has begun the run
}

// span is when a run got its sandbox, and when it was done.
type span struct{ start, end time.Time }

func newRun(req orchestrator.Request, cancel context.CancelFunc, now time.Time) *Run {
	if req.Restored() {
		now = req.Began()
	}
	return &Run{
		id: req.ID, owner: req.Caller.Owner(), language: req.Language, background: req.Background, code: req.Code,
		asked: now, cancel: cancel, done: make(chan struct{}),
		state: Queued, subscribers: map[chan struct{}]bool{},
		suspension: suspension{anySession: req.Restored(), restored: req.Restored()},
	}
}

// reachedBy reports whether a caller may do act with the run through a host.
func (r *Run) reachedBy(c caller.Caller, act caller.Act) bool {
	r.mu.Lock()
	door := caller.Hosts
	if r.suspension.anySession {
		door = caller.People
	}
	r.mu.Unlock()
	return c.May(door, act, caller.Object{Kind: caller.Run, Owner: r.owner})
}

// ID returns the run's ID.
func (r *Run) ID() string { return r.id }

// Code returns the code of the run, or "" when the run is done.
func (r *Run) Code() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.code)
}

// Done returns a channel that is closed when the run is done.
func (r *Run) Done() <-chan struct{} { return r.done }

// Wait waits until the run is done and returns its outcome. If ctx ends first, Wait cancels the run
// and returns the outcome of the cancelled run.
func (r *Run) Wait(ctx context.Context) (*orchestrator.Outcome, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		r.cancel()
		<-r.done
	}
	return r.outcome, r.err
}

// Cancel ends the run. It may be called twice.
func (r *Run) Cancel() {
	r.mu.Lock()
	r.cancelled = r.state != Done || r.cancelled
	r.mu.Unlock()
	r.cancel()
}

// Subscribe returns a channel that holds a value whenever the status may have
// changed since the last receive, and a function that ends the subscription.
func (r *Run) Subscribe() (changed <-chan struct{}, stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	signal := make(chan struct{}, 1)
	r.subscribers[signal] = true
	return signal, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.subscribers, signal)
	}
}

// Status returns the current status of the run.
func (r *Run) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Status{
		Suspended: r.suspension.since, Durable: r.suspension.durable, Restored: r.suspension.restored,
		ID: r.id, Owner: r.owner, Language: r.language, Background: r.background,
		State: r.state, Asked: r.asked, Began: r.span.start, Ended: r.span.end,
		Cancelled: r.cancelled && (r.outcome == nil || !r.outcome.Envelope.Result.OK),
		Questions: append([]approval.Question(nil), r.questions...),
		Outcome:   r.outcome, Err: r.err,
	}
}

// Printed returns the output of the code so far, or all of it when the run is done.
func (r *Run) Printed() orchestrator.Printed {
	r.mu.Lock()
	live, outcome := r.live, r.outcome
	r.mu.Unlock()
	switch { // without the lock, because redacting the output is slow
	case outcome != nil:
		return outcome.Printed
	case live.Printed != nil:
		return live.Printed()
	}
	return orchestrator.Printed{}
}

// Progress returns the progress of the run, see orchestrator.Live. It is empty unless the run is in progress.
func (r *Run) Progress() string {
	r.mu.Lock()
	live := r.live
	r.mu.Unlock()
	return live.Progress()
}

func (r *Run) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// began notes that the run has its sandbox.
func (r *Run) began(live orchestrator.Live, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspension.restored {
		now = r.asked // the run goes on; it does not begin
	}
	r.state, r.span.start, r.live = Running, now, live
	r.wakeLocked()
}

// suspend notes since when the run is suspended, or that it goes on if since is zero.
func (r *Run) suspend(since time.Time, durable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == Done {
		return
	}
	r.suspension.durable, r.suspension.since = durable, since
	r.wakeLocked()
}

// outlives reports whether the run goes on when its session ends, because it can wait for people beyond the process.
// Its principal then reaches it from every session.
func (r *Run) outlives() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspension.durable {
		r.suspension.anySession = true
	}
	return r.suspension.durable
}

// finish notes the outcome of the run.
func (r *Run) finish(outcome *orchestrator.Outcome, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspension.since, r.suspension.durable = time.Time{}, false
	r.state, r.span.end, r.live, r.questions, r.code = Done, now, orchestrator.Live{}, nil, nil
	r.outcome, r.err = outcome, err
	r.wakeLocked()
	close(r.done)
}

// ask notes that the run waits for an answer, or no longer waits for it.
func (r *Run) ask(q approval.Question, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == Done {
		return
	}
	if open {
		r.questions = append(r.questions, q)
		r.wakeLocked()
		return
	}
	for i := range r.questions {
		if r.questions[i].ID == q.ID {
			r.questions = append(r.questions[:i:i], r.questions[i+1:]...)
			break
		}
	}
	r.wakeLocked()
}

// wakeLocked wakes the subscribers.
func (r *Run) wakeLocked() {
	for signal := range r.subscribers {
		select {
		case signal <- struct{}{}:
		default: // it has not been received since the last change
		}
	}
}
