package orchestrator

import (
	"context"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// keepDone is how long the outcome of a background run can be asked for.
const keepDone = time.Hour

// maxKept is how many finished background runs are kept at most.
const maxKept = 256

// State is where a background run stands.
type State string

// The states of a run that was started in the background.
const (
	StateRunning State = "running"
	StateDone    State = "done"
)

// Status is a background run as get_run shows it. Outcome and Err are nil while
// it is running; then exactly one of them is set.
type Status struct {
	RunID   string
	State   State
	Outcome *Outcome
	Err     error // why the request could not become a run
}

// background holds the runs that nobody waits for. The zero value is ready.
type background struct {
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	jobs   map[string]*job
	order  []string // of their start
}

type job struct {
	sessionID string
	cancel    context.CancelFunc
	status    Status
	doneAt    time.Time
}

// Start begins a run in the background and returns its ID at once. The run
// outlives ctx; Cancel and Close end it. An *InputError refuses it.
func (o *Orchestrator) Start(ctx context.Context, req Request) (string, error) {
	if err := req.Check(); err != nil {
		return "", err
	}
	if _, err := o.image(req.Language); err != nil {
		return "", err
	}
	id := telemetry.NewID("run")
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	j := &job{sessionID: req.Caller.Session, cancel: cancel, status: Status{RunID: id, State: StateRunning}}
	if !o.background.add(id, j) {
		cancel()
		return "", context.Canceled
	}
	go func() {
		defer o.background.running.Done()
		defer cancel()
		outcome, err := o.run(ctx, id, req, nil)
		o.background.done(j, outcome, err)
	}()
	return id, nil
}

// Get returns a background run of the given session, as long as it is kept:
// an hour after its end.
func (o *Orchestrator) Get(sessionID, runID string) (Status, bool) {
	return o.background.get(sessionID, runID)
}

// Cancel ends a background run of the given session. It reports whether there
// is such a run that was still going.
func (o *Orchestrator) Cancel(sessionID, runID string) bool {
	return o.background.cancel(sessionID, runID)
}

// EndSession says that a session of the host is over: what it has done counts
// towards no limit and no rule any more. Its runs go on.
func (o *Orchestrator) EndSession(sessionID string) { o.parts.Broker.EndSession(sessionID) }

func (b *background) add(id string, j *job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.jobs == nil {
		b.jobs = map[string]*job{}
	}
	b.forgetLocked()
	b.jobs[id] = j
	b.order = append(b.order, id)
	b.running.Add(1)
	return true
}

func (b *background) done(j *job, outcome *Outcome, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.status.State, j.status.Outcome, j.status.Err, j.doneAt = StateDone, outcome, err, time.Now()
}

func (b *background) get(sessionID, runID string) (Status, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgetLocked()
	j, ok := b.jobs[runID]
	if !ok || j.sessionID != sessionID {
		return Status{}, false
	}
	return j.status, true
}

func (b *background) cancel(sessionID, runID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	j, ok := b.jobs[runID]
	if !ok || j.sessionID != sessionID || j.status.State != StateRunning {
		return false
	}
	j.cancel()
	return true
}

// forgetLocked drops finished runs that are too old or too many, oldest first.
func (b *background) forgetLocked() {
	excess := len(b.order) - maxKept
	kept := b.order[:0]
	for _, id := range b.order {
		j := b.jobs[id]
		finished := j.status.State == StateDone
		if finished && (excess > 0 || time.Since(j.doneAt) > keepDone) {
			delete(b.jobs, id)
			excess--
			continue
		}
		kept = append(kept, id)
	}
	b.order = kept
}

func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	for _, j := range b.jobs {
		j.cancel()
	}
	b.mu.Unlock()
	b.running.Wait()
}
