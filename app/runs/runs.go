// Package runs is the registry of all runs of one Airlock: who owns each, where
// it stands, what it waits for, and what came of it. A caller sees and cancels
// its own runs only; another's is as if it did not exist.
package runs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Executor makes runs; *orchestrator.Orchestrator is one. Its methods may be
// called concurrently.
type Executor interface {
	// Check refuses a request that cannot become a run.
	Check(req orchestrator.Request) error
	// Run makes the run with the ID of the request and returns its outcome.
	// Cancelling ctx ends it. An error means that there was no run.
	Run(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error)
	// EndSession says that a session makes no more runs.
	EndSession(session string)
}

// Options of a registry. The zero value is usable.
type Options struct {
	Questions *Questions       // nil: what runs wait for is not known
	Now       func() time.Time // nil means time.Now
	// While returns a context that ends when a caller may not act any more; nil: none ends.
	While func(ctx context.Context, who caller.Caller) (_ context.Context, stop func())
}

// Registry holds the runs that are going on, and those that have finished for
// as long as Retention says. Its methods may be called concurrently.
type Registry struct {
	executor Executor
	now      func() time.Time
	while    func(ctx context.Context, who caller.Caller) (context.Context, func())
	going    sync.WaitGroup

	mu       sync.Mutex      // guards what follows
	closed   bool            // no run begins any more
	runs     map[string]*Run // by ID
	finished retained
}

var (
	// ErrClosed refuses a run because Airlock is about to end. It has a method
	// Hint() string.
	ErrClosed error = closedError{}
	// ErrCancelled is the error of a run that was cancelled before it had begun.
	ErrCancelled = errors.New("the run was cancelled before it had begun")

	errUnknownCaller = errors.New("a run needs a caller with a principal and a session")
)

// New returns a registry of the runs that executor makes.
func New(executor Executor, opts *Options) *Registry {
	r := &Registry{executor: executor, now: time.Now, runs: map[string]*Run{}}
	if opts != nil && opts.Now != nil {
		r.now = opts.Now
	}
	r.while = func(ctx context.Context, _ caller.Caller) (context.Context, func()) { return ctx, func() {} }
	if opts != nil && opts.While != nil {
		r.while = opts.While
	}
	if opts != nil && opts.Questions != nil {
		opts.Questions.follow(r.noteQuestion)
	}
	return r
}

// Start begins a run of req.Caller and returns it at once. The run outlives
// ctx: Run.Wait, Cancel, EndSession, Close and the end of the caller's credential end it. An error says why the
// request cannot become a run; one with a method Hint() string says what to do.
func (r *Registry) Start(ctx context.Context, req orchestrator.Request) (*Run, error) {
	return r.start(ctx, req, nil)
}

// start is Start for a run that waits, queued, for its turn first; nil: it does not.
func (r *Registry) start(ctx context.Context, req orchestrator.Request, turn *turn) (*Run, error) {
	if !req.Caller.Known() {
		return nil, errUnknownCaller
	}
	if err := errors.Join(ctx.Err(), r.executor.Check(req)); err != nil {
		return nil, err
	}
	if req.ID == "" {
		req.ID = telemetry.NewID("run")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	run := newRun(req, cancel, r.now())
	req.OnStart = func(printed func() orchestrator.Printed) { run.began(printed, r.now()) }
	if !r.add(run) {
		cancel()
		return nil, ErrClosed
	}
	go func() {
		defer r.going.Done()
		defer cancel()
		ctx, stop := r.while(ctx, req.Caller)
		defer stop()
		outcome, err := r.execute(ctx, req, turn)
		if err != nil && ctx.Err() != nil {
			err = ErrCancelled
		}
		r.end(run, outcome, err)
	}()
	return run, nil
}

// execute makes a run when its turn has come.
func (r *Registry) execute(ctx context.Context, req orchestrator.Request, turn *turn) (*orchestrator.Outcome, error) {
	if turn != nil {
		if err := turn.wait(ctx); err != nil {
			return nil, err
		}
		defer turn.leave()
	}
	return r.executor.Run(ctx, req)
}

func (r *Registry) add(run *Run) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.runs[run.id] != nil {
		return false
	}
	r.forgetLocked(r.finished.expired(r.now()))
	r.runs[run.id] = run
	r.going.Add(1)
	return true
}

// end notes what came of a run, and lets go of finished ones past the limits.
func (r *Registry) end(run *Run, outcome *orchestrator.Outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	run.finish(outcome, err, now)
	if _, ok := r.runs[run.id]; !ok {
		return // its session is over: no caller could ask for it
	}
	r.finished.add(run, now)
	r.forgetLocked(r.finished.excess())
}

func (r *Registry) forgetLocked(runs []*Run) {
	for _, run := range runs {
		delete(r.runs, run.id)
	}
}

// Get returns a run that the caller may see. For another's run it answers as
// for one that does not exist.
func (r *Registry) Get(c caller.Caller, id string) (*Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetLocked(r.finished.expired(r.now()))
	run, ok := r.runs[id]
	if !ok || !run.reachedBy(c, caller.See) {
		return nil, false
	}
	return run, true
}

// List returns the runs that the caller may see, the oldest first.
func (r *Registry) List(c caller.Caller) []*Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetLocked(r.finished.expired(r.now()))
	var list []*Run
	for _, run := range r.runs {
		if run.reachedBy(c, caller.See) {
			list = append(list, run)
		}
	}
	slices.SortFunc(list, func(a, b *Run) int { return a.asked.Compare(b.asked) })
	return list
}

// All returns every run, the oldest first, for who checks itself which of them its
// caller may see.
func (r *Registry) All() []*Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetLocked(r.finished.expired(r.now()))
	return slices.SortedFunc(maps.Values(r.runs), func(a, b *Run) int { return a.asked.Compare(b.asked) })
}

// Cancel ends a run that the caller may see. It reports whether the run was
// still queued or running; calling it twice is fine.
func (r *Registry) Cancel(c caller.Caller, id string) bool {
	run, ok := r.Get(c, id)
	if !ok || run.over() {
		return false
	}
	run.cancel()
	return true
}

// EndSession says that a session is over: its runs are cancelled and waited for,
// and what they came to is forgotten, because no caller can ask for it any more.
// Calling it twice is fine.
func (r *Registry) EndSession(session string) {
	var left []*Run
	r.mu.Lock()
	for id, run := range r.runs {
		if run.owner.Session == session {
			run.cancel()
			left = append(left, run)
			delete(r.runs, id)
			r.finished.remove(run)
		}
	}
	r.mu.Unlock()
	for _, run := range left {
		<-run.done
	}
	r.executor.EndSession(session)
}

// closedError is ErrClosed.
type closedError struct{}

func (closedError) Error() string { return "no more runs are made: Airlock is ending" }

// Hint says what to do.
func (closedError) Hint() string {
	return "send it again in a moment: another Airlock may have taken over"
}

// Going is how many runs are not over.
func (r *Registry) Going() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, run := range r.runs {
		if !run.over() {
			n++
		}
	}
	return n
}

// Drain refuses new runs with ErrClosed from now on, and waits until those that
// are going on are over, or ctx ends. It reports whether all are over.
func (r *Registry) Drain(ctx context.Context) bool {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	over := make(chan struct{})
	go func() { // ends with the runs, which Close ends at the latest
		r.going.Wait()
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close ends all runs and waits until they are over. Calling it twice is fine.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	for run := range maps.Values(r.runs) {
		run.cancel()
	}
	r.mu.Unlock()
	r.going.Wait()
}
