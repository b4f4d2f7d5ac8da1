package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// JobState is the state of a job.
type JobState string

// The states of a job. All but the first two are final.
const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobSuccess   JobState = "success"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
	JobTimedOut  JobState = "timed_out"
	JobLost      JobState = "lost" // its process has ended, and the result is lost
)

// keepJobs is how long finished jobs are kept. Other limits of jobs are in package quota. A queued job waits
// for a turn; the time in the queue does not count towards its time limit.
const keepJobs = time.Hour

// ErrJobs is returned if a limit of jobs is reached. A later attempt can succeed.
var ErrJobs = &jobsError{}

type jobsError struct{}

func (*jobsError) Error() string {
	return "too many background jobs are queued, or too much output of earlier ones is kept"
}

// Hint returns the advice.
func (*jobsError) Hint() string {
	return "wait until queued jobs are over; what a job has printed is kept for an hour"
}

// JobOptions of a registry of jobs. The zero value is usable.
type JobOptions struct {
	Book   *JobBook         // nil: a restart forgets jobs
	Now    func() time.Time // nil means time.Now
	Logger *slog.Logger     // nil logs nothing
}

// Jobs are runs in the background whose results are fetched later by the ID of the job, a UUID. At
// most jobsAtOnce jobs run concurrently. A free turn goes to the account with the fewest running
// jobs; the jobs of one account run in the order of their requests. A finished job is kept for
// keepJobs. Only the caller that started a job sees it. The methods are safe for concurrent use.
type Jobs struct {
	registry *Registry
	opts     JobOptions
	turns    *quota.Limiter
	watching sync.WaitGroup

	mu   sync.Mutex // guards what follows
	jobs map[string]*job
}

// job is a run with the state of its job.
type job struct {
	id      string
	owner   caller.Owner
	account string // whose quota it uses
	run     *Run
	timer   *time.Timer // forgets it; nil until it is finished
	bytes   int         // of its output
	state   JobState    // as the book has it
}

// JobStatus is a job at one moment.
type JobStatus struct {
	ID      string
	RunID   string
	State   JobState
	Last    JobState              // of a lost job: its last known state
	Outcome *orchestrator.Outcome // of a finished job that became a run
	Err     error                 // why a finished job did not become a run
}

// NewJobs returns the jobs of a registry.
func NewJobs(registry *Registry, opts *JobOptions) *Jobs {
	j := &Jobs{registry: registry, turns: quota.New(quota.For(quota.Jobs)), jobs: map[string]*job{}}
	if opts != nil {
		j.opts = *opts
	}
	if j.opts.Now == nil {
		j.opts.Now = time.Now
	}
	if j.opts.Logger == nil {
		j.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return j
}

// Start queues a job and returns its ID. The job outlives ctx: Cancel, EndSession and Close end it.
// If a limit is reached, the error is ErrJobs. Other errors are those of Registry.Start, or the job
// could not be written into the book.
func (j *Jobs) Start(ctx context.Context, req orchestrator.Request) (string, error) {
	req.Background = true
	if req.ID == "" {
		req.ID = j.registry.NewID()
	}
	made := &job{id: j.registry.mark(newUUID()), owner: req.Caller.Owner(), account: req.Caller.Account(),
		state: JobQueued}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.fitsLocked(made.account) {
		return "", ErrJobs
	}
	if err := j.opts.Book.enter(ctx, made, req.ID, j.opts.Now()); err != nil {
		return "", fmt.Errorf("noting a job: %w", err)
	}
	turn, err := j.turns.Join(made.account)
	if err != nil {
		return "", errors.Join(err, j.opts.Book.cross(context.WithoutCancel(ctx), made.id))
	}
	run, err := j.registry.start(ctx, req, turn)
	if err != nil {
		turn.Release()
		return "", errors.Join(err, j.opts.Book.cross(context.WithoutCancel(ctx), made.id))
	}
	made.run = run
	j.jobs[made.id] = made
	j.watching.Go(func() { j.watch(context.WithoutCancel(ctx), made) })
	return made.id, nil
}

// fitsLocked reports whether an account may have one more job.
func (j *Jobs) fitsLocked(account string) bool {
	var all, own struct{ jobs, queued, bytes int64 }
	for _, other := range j.jobs {
		counted := []*struct{ jobs, queued, bytes int64 }{&all}
		if other.account == account {
			counted = append(counted, &own)
		}
		for _, c := range counted {
			c.jobs++
			c.bytes += int64(other.bytes)
			if other.state == JobQueued && other.run.Status().State == Queued {
				c.queued++
			}
		}
	}
	queue, output := int64(quota.For(quota.Jobs).Queue), quota.For(quota.JobOutput)
	return all.queued < queue && own.queued < quota.For(quota.QueuedJobs).Each &&
		own.jobs < quota.For(quota.KeptJobs).Each && own.bytes < output.Each && all.bytes < output.Total
}

// watch waits until a job is done and notes each change of its state.
func (j *Jobs) watch(ctx context.Context, made *job) {
	changed, stop := made.run.Subscribe()
	defer stop()
	for state := made.run.Status().State; state != Done; state = made.run.Status().State {
		if state == Running && made.state == JobQueued { // only this goroutine changes it
			j.note(ctx, made, JobRunning)
		}
		<-changed
	}
	j.finish(ctx, made)
}

func (j *Jobs) finish(ctx context.Context, made *job) {
	status := made.run.Status()
	j.note(ctx, made, endOf(status))
	j.mu.Lock()
	defer j.mu.Unlock()
	if status.Outcome != nil {
		made.bytes = len(status.Outcome.Stdout) + len(status.Outcome.Stderr)
	}
	if j.jobs[made.id] == made { // its session has not ended
		made.timer = time.AfterFunc(keepJobs, func() { j.forget(made) })
	}
}

// endOf returns the final state of the job of a run that is done.
func endOf(status Status) JobState {
	if status.Outcome == nil {
		if errors.Is(status.Err, ErrCancelled) {
			return JobCancelled
		}
		return JobFailed
	}
	switch end := status.Outcome.End; {
	case end.Stopped == orchestrator.StoppedByCancel:
		return JobCancelled
	case end.Stopped == orchestrator.StoppedAtTimeout:
		return JobTimedOut
	case end == orchestrator.End{} && (status.Outcome.Envelope.Result.OK):
		return JobSuccess
	}
	return JobFailed
}

// note changes the state of a job, first in the book and then for callers, so that a restart never
// reports an earlier state than a caller has seen. An error is only logged: after a restart the job
// is reported as lost, which is true.
func (j *Jobs) note(ctx context.Context, made *job, state JobState) {
	if err := j.opts.Book.note(ctx, made.id, state, j.opts.Now()); err != nil {
		j.opts.Logger.WarnContext(ctx, "the state of a job could not be noted", slog.Any(telemetry.KeyError, err))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	made.state = state
}

func (j *Jobs) forget(made *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.jobs[made.id] == made {
		delete(j.jobs, made.id)
	}
}

// Get returns a job of the caller. A job of a process that has ended is reported as lost for an
// hour. The principal may see it from any session, because its session has ended with the process.
func (j *Jobs) Get(ctx context.Context, c caller.Caller, id string) (JobStatus, bool) {
	j.mu.Lock()
	made, ok := j.jobs[id]
	var state JobState
	if ok {
		state = made.state
	}
	j.mu.Unlock()
	if !ok {
		return j.lost(ctx, c, id)
	}
	if !made.run.reachedBy(c, caller.See) {
		return JobStatus{}, false
	}
	status := made.run.Status()
	return JobStatus{ID: id, RunID: made.run.ID(), State: state, Outcome: status.Outcome, Err: status.Err}, true
}

func (j *Jobs) lost(ctx context.Context, c caller.Caller, id string) (JobStatus, bool) {
	found, err := j.opts.Book.find(ctx, id, j.opts.Now())
	if err != nil {
		j.opts.Logger.WarnContext(ctx, "lost jobs could not be looked up", slog.Any(telemetry.KeyError, err))
	}
	if err != nil || found.id == "" || !c.May(caller.People, caller.See,
		caller.Object{Kind: caller.Run, Owner: found.owner}) {
		return JobStatus{}, false
	}
	return JobStatus{ID: id, RunID: found.runID, State: JobLost, Last: found.state}, true
}

// Cancel ends a job of the caller. It reports whether the job was still queued or running. It may
// be called twice.
func (j *Jobs) Cancel(c caller.Caller, id string) bool {
	j.mu.Lock()
	made, ok := j.jobs[id]
	j.mu.Unlock()
	if !ok || !made.run.reachedBy(c, caller.Change) || made.run.over() {
		return false
	}
	made.run.Cancel()
	return true
}

// EndSession forgets the jobs of a session that has ended. It cancels those that are not finished
// and waits for them.
func (j *Jobs) EndSession(session string) {
	var left []*job
	j.mu.Lock()
	for id, made := range j.jobs {
		if made.owner.Session == session {
			left = append(left, made)
			delete(j.jobs, id)
			if made.timer != nil {
				made.timer.Stop()
			}
		}
	}
	j.mu.Unlock()
	for _, made := range left {
		made.run.Cancel()
		<-made.run.Done()
	}
}

// Close cancels all jobs, waits for them, and forgets them. It may be called twice.
func (j *Jobs) Close() error {
	j.mu.Lock()
	for _, made := range j.jobs {
		made.run.Cancel()
	}
	j.mu.Unlock()
	j.watching.Wait()
	j.mu.Lock()
	for id, made := range j.jobs {
		if made.timer != nil {
			made.timer.Stop()
		}
		delete(j.jobs, id)
	}
	j.mu.Unlock()
	return j.opts.Book.Close()
}

// newUUID returns a random UUID, version 4 (RFC 9562, section 5.4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
