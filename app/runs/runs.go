// Package runs is the registry of all runs of one Airlock: the owner of each run, its state, the
// questions that it waits for, and its outcome. A caller sees and cancels only its own runs; a run
// of another caller appears not to exist.
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
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Executor executes runs. Its methods must be safe for concurrent use. *orchestrator.Orchestrator
// implements it.
type Executor interface {
	// Check returns an error if a request cannot become a run.
	Check(req orchestrator.Request) error
	// Run executes the run with the ID of the request and returns its outcome.
	// Cancelling ctx ends it. An error means that the run was not started.
	Run(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error)
	// EndSession is called when a session has ended. No runs of it follow.
	EndSession(session string)
}

// Leaver is an Executor whose runs can wait for people beyond the process. *orchestrator.Orchestrator
// implements it.
type Leaver interface {
	Executor
	// Leave leaves the runs that wait for people, now and later, to the next process. Their Run returns an error.
	Leave()
}

// Options of a registry. The zero value is usable.
type Options struct {
	Questions *Questions       // nil: runs have no questions
	Now       func() time.Time // nil means time.Now
	// While returns a context that ends when a caller may no longer act. If it is nil, callers may
	// always act.
	While func(ctx context.Context, who caller.Caller) (_ context.Context, stop func())
	// Mark changes the ID of a run or a job so that it names this process; nil changes nothing.
	Mark func(id string) string
	// Past returns a run that ended with a process before this one. If it is nil, such runs are unknown.
	Past func(id string) (Past, bool)
}

// Registry has the runs that are queued or running, and finished runs within the limits of this
// package. Its methods are safe for concurrent use.
type Registry struct {
	executor Executor
	now      func() time.Time
	while    func(ctx context.Context, who caller.Caller) (context.Context, func())
	past     func(id string) (Past, bool)
	mark     func(id string) string
	going    sync.WaitGroup

	mu       sync.Mutex      // guards what follows
	closed   bool            // no new runs are started
	runs     map[string]*Run // by ID
	finished retained
}

var (
	// ErrClosed is returned for new runs when Airlock shuts down. It has a method Hint() string.
	ErrClosed error = closedError{}
	// ErrCancelled is the error of a run that was cancelled before it had begun.
	ErrCancelled = errors.New("the run was cancelled before it had begun")

	errGoesOn        = errors.New("the run goes on here already")
	errUnknownCaller = errors.New("a run needs a caller with a principal and a session")
)

// New returns a registry of the runs that executor executes.
func New(executor Executor, opts *Options) *Registry {
	r := &Registry{executor: executor, now: time.Now, runs: map[string]*Run{}}
	if opts != nil && opts.Now != nil {
		r.now = opts.Now
	}
	r.while = func(ctx context.Context, _ caller.Caller) (context.Context, func()) { return ctx, func() {} }
	if opts != nil && opts.While != nil {
		r.while = opts.While
	}
	r.past = func(string) (Past, bool) { return Past{}, false }
	if opts != nil && opts.Past != nil {
		r.past = opts.Past
	}
	r.mark = func(id string) string { return id }
	if opts != nil && opts.Mark != nil {
		r.mark = opts.Mark
	}
	if opts != nil && opts.Questions != nil {
		opts.Questions.follow(r.noteQuestion)
	}
	return r
}

// NewID returns an ID for a run of this registry.
func (r *Registry) NewID() string { return r.mark(telemetry.NewID("run")) }

// Start starts a run of req.Caller and returns it at once. The run outlives ctx: Run.Wait, Cancel,
// EndSession, Close and the end of the caller's credential end it. If the request cannot become a
// run, Start returns an error, which may have a method Hint() string with advice.
func (r *Registry) Start(ctx context.Context, req orchestrator.Request) (*Run, error) {
	return r.start(ctx, req, nil)
}

// start is Start for a run that stays queued until its turn. A nil turn means that it does not
// wait.
func (r *Registry) start(ctx context.Context, req orchestrator.Request, turn *quota.Reservation) (*Run, error) {
	if !req.Caller.Known() {
		return nil, errUnknownCaller
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.executor.Check(req); err != nil && !req.Restored() { // a restored run ends as interrupted
		return nil, err
	}
	if req.ID == "" {
		req.ID = r.NewID()
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	run := newRun(req, cancel, r.now())
	req.OnStart = func(live orchestrator.Live) { run.began(live, r.now()) }
	req.OnSuspend = run.suspend
	if err := r.add(run); err != nil {
		cancel()
		return nil, err
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

// execute waits for the turn and executes the run.
func (r *Registry) execute(ctx context.Context, req orchestrator.Request,
	turn *quota.Reservation) (*orchestrator.Outcome, error) {
	if turn != nil {
		if err := turn.Wait(ctx); err != nil {
			return nil, err
		}
		defer turn.Release()
	}
	return r.executor.Run(ctx, req)
}

// add adds a run. It replaces one with the same ID that has ended here, because another node has taken it meanwhile.
func (r *Registry) add(run *Run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	if former := r.runs[run.id]; former != nil {
		if !former.over() {
			return errGoesOn
		}
		r.finished.remove(former)
	}
	r.forgetLocked(r.finished.expired(r.now()))
	r.runs[run.id] = run
	r.going.Add(1)
	return nil
}

// end notes the outcome of a run and evicts finished runs above the limits.
func (r *Registry) end(run *Run, outcome *orchestrator.Outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	run.finish(outcome, err, now)
	if r.runs[run.id] != run {
		return // its session has ended: no caller could request it
	}
	r.finished.add(run, now)
	r.forgetLocked(r.finished.excess())
}

func (r *Registry) forgetLocked(runs []*Run) {
	for _, run := range runs {
		delete(r.runs, run.id)
	}
}

// Get returns a run that the caller may see. It returns false both for a run of another caller and
// for a run that does not exist.
func (r *Registry) Get(c caller.Caller, id string) (*Run, bool) {
	run, ok := r.find(id)
	if !ok {
		past, ended := r.past(id)
		if !ended {
			return nil, false
		}
		run = past.run(id)
	}
	if !run.reachedBy(c, caller.See) {
		return nil, false
	}
	return run, true
}

func (r *Registry) find(id string) (*Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetLocked(r.finished.expired(r.now()))
	run, ok := r.runs[id]
	return run, ok
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

// All returns every run, oldest first. The code that calls it must check which of them its caller
// may see.
func (r *Registry) All() []*Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetLocked(r.finished.expired(r.now()))
	return slices.SortedFunc(maps.Values(r.runs), func(a, b *Run) int { return a.asked.Compare(b.asked) })
}

// Cancel ends a run that the caller may see. It reports whether the run was still queued or
// running. It may be called twice.
func (r *Registry) Cancel(c caller.Caller, id string) bool {
	run, ok := r.Get(c, id)
	if !ok || run.over() {
		return false
	}
	run.Cancel()
	return true
}

// EndSession cancels the runs of a session, waits for them and forgets them, because no caller can
// request them any more. Runs that can wait for people beyond the process go on: their principal reaches them from
// other sessions. It may be called twice.
func (r *Registry) EndSession(session string) {
	var left []*Run
	r.mu.Lock()
	for id, run := range r.runs {
		if run.owner.Session == session {
			if run.outlives() {
				continue
			}
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

// Hint returns the advice.
func (closedError) Hint() string {
	return "send it again in a moment: another Airlock may have taken over"
}

// Going returns the number of runs that are not done.
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

// Suspended returns the number of runs that wait for people without a sandbox.
func (r *Registry) Suspended() int {
	n := 0
	for _, run := range r.All() {
		if !run.Status().Suspended.IsZero() {
			n++
		}
	}
	return n
}

// SuspendedSince returns since when a run waits for people without a sandbox; zero if it does not.
func (r *Registry) SuspendedSince(id string) time.Time {
	run, ok := r.find(id)
	if !ok {
		return time.Time{}
	}
	return run.Status().Suspended
}

// Drain refuses new runs with ErrClosed from now on, leaves those that can wait for people beyond the process to the
// next one, and waits until all others are done or ctx ends. It reports whether all are done.
func (r *Registry) Drain(ctx context.Context) bool {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	if executor, ok := r.executor.(Leaver); ok {
		executor.Leave()
	}
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

// Close ends all runs and waits until they are over. It may be called twice.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	for run := range maps.Values(r.runs) {
		run.cancel()
	}
	r.mu.Unlock()
	r.going.Wait()
}
