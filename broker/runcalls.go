package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/redact"
)

// RunOptions are the options of one run. The zero value is usable.
type RunOptions struct {
	// Redactor redacts results in place of the broker's redactor, which is used if it is nil.
	Redactor *redact.Redactor
	// OnWait is called with true when the first call of the run starts to wait for a person, and
	// with false when the last one has stopped, so that the run's clock can be paused. It must not
	// call the RunCalls. It may be nil.
	OnWait func(waiting bool)
	// OnApproved is called with the Tag of a call that a person has approved, before it is made. The call is refused
	// if it returns an error. It may be nil.
	OnApproved func(tag string) error
	// Notices receives what servers send during the calls. If it is nil, they are dropped.
	Notices *Notices
	// Before is what the run has used in other processes.
	Before Used
	// Recording stores every call with its answer. It may be nil. If it fails, the run cannot be
	// replayed, but continues.
	Recording Recording
	// Player answers the calls from a recording: no server is called and no person is asked, and
	// the audit log marks each call as replayed. It is nil if the run is not a replay.
	Player *replay.Player
	// Keep stores a result of up to limits.largeResultBytes as a file and returns its path in the sandbox, or the
	// reason for the code why it cannot be stored. If Keep is nil, results have at most limits.resultBytes.
	Keep func(ctx context.Context, call Call, result json.RawMessage) (path, problem string)
	// Admitted is the decision about the run as a whole. If it is set, the calls of the run take no
	// steps. It is nil if only the calls are decided.
	Admitted *Admission
}

// Used is what the calls of a run have used of its limits.
type Used struct {
	Calls, Made, Denied int
	BytesIn, BytesOut   int64
	Approval            approval.State // the most restrictive state
	Redactions          map[string]int
}

// Recording stores the answers to a run's calls. *replay.Recorder implements it. Answered is safe
// for concurrent use.
type Recording interface {
	Answered(e replay.Exchange) error
	Abandon(reason error) // the recording stays unfinished, so the run cannot be replayed
}

// RunCalls carries out the calls of one run. Its methods are safe for concurrent use.
type RunCalls struct {
	broker   *Broker
	identity identity
	opts     RunOptions
	snapshot *catalog.Snapshot
	facts    *sessionFacts
	limits   admission.Limits    // the limits when the run started; of the rates, only that of the catalog is used
	slots    *semaphore.Weighted // one per call that is running or has an unread answer
	waiting  waiting
	// questions are the questions to people.
	questions questions
	signings  signings
	backlogs

	mu     sync.Mutex // guards all fields below
	counts runCounts
	active activeCalls

	failures failures
	searches admission.Bucket // of the catalog
	loops    loopDetector
	flags    map[*catalog.Snapshot]map[string][]catalog.Flag // by policies.ToolID, computed on first use
}

// backlogs bound what a run holds in memory.
type backlogs struct {
	unread backlog // unread answers
	work   backlog // arguments of running calls
}

// runCounts are the totals of a run's calls.
type runCounts struct {
	Used                       // Calls is the number of all calls that arrived
	refused map[refusedFor]int // refused calls without a record
}

// activeCalls are the running calls.
type activeCalls struct {
	closed  bool
	cancels map[string]context.CancelFunc // by ID
	idle    chan struct{}                 // closed when the last of them has ended, after the run was closed
}

// Summary contains the totals of a run's calls.
type Summary struct {
	Made          int            // calls that were made
	Denied        int            // calls that were refused, for any reason, and not made
	Open          int            // cancelled calls that have not ended in time
	BytesIn       int64          // bytes of results that went into the sandbox
	ApprovalState string         // the most restrictive state of all calls, a value of admission/approval
	Redactions    map[string]int // kind → count, over all results; nil for none
}

// Call carries out one call from validation to answer. It returns when the call has ended, or soon
// after ctx ends. The outcome is recorded in both cases.
func (s *RunCalls) Call(ctx context.Context, call Call) Answer {
	answer, read := s.CallUnread(ctx, call)
	read()
	return answer
}

// CallUnread is like Call, for an answer that reaches the code later. Until the caller calls read,
// the answer uses one of the run's slots for calls and counts as unread. It is safe to call read
// more than once.
func (s *RunCalls) CallUnread(ctx context.Context, call Call) (answer Answer, read func()) {
	r := &reserved{run: s}
	read = sync.OnceFunc(r.release)
	a := &attempt{run: s, broker: s.broker, call: call, id: telemetry.NewID("call"), began: s.broker.opts.Now(),
		reserved: r}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.enter(a, cancel) {
		return a.answerError(failf(errortype.Killed, "the run is over")), read
	}
	defer s.leave(a)
	defer a.releaseWork()
	defer a.endTurn()
	if s.opts.Player != nil {
		answer = a.replayed(ctx)
		s.tally(answer.Error == nil || !errortype.IsDenial(answer.Error.Type)) // recordings have no other refusals
	} else {
		answer = a.traced(ctx)
		s.keep(a.number, call, answer, a.held)
	}
	if answer.Error != nil {
		s.failed(*answer.Error)
	}
	return answer, read
}

// enter counts a call and assigns its number.
func (s *RunCalls) enter(a *attempt, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Calls++
	a.number = s.counts.Calls
	if s.active.closed {
		return false
	}
	s.active.cancels[a.id] = cancel
	return true
}

func (s *RunCalls) leave(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active.cancels, a.id)
	if s.active.idle != nil && len(s.active.cancels) == 0 {
		close(s.active.idle)
		s.active.idle = nil
	}
}

// closeTimeout is how long Close waits for cancelled calls.
const closeTimeout = 10 * time.Second

// Begun returns the number of calls that have arrived so far, refused ones included.
func (s *RunCalls) Begun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.Calls
}

// Close cancels the running calls, waits until their outcomes are recorded, and returns the totals
// of all calls. It may be called again, but not concurrently.
func (s *RunCalls) Close() Summary {
	s.mu.Lock()
	s.active.closed = true
	for _, cancel := range s.active.cancels {
		cancel()
	}
	if len(s.active.cancels) > 0 {
		idle := make(chan struct{})
		s.active.idle = idle
		s.mu.Unlock()
		timer := time.NewTimer(closeTimeout)
		defer timer.Stop()
		select {
		case <-idle:
		case <-timer.C: // an Upstream or an Approver ignores the cancellation of its context
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
	s.recordRefusals()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broker.closeFacts(s)
	return Summary{
		Made: s.counts.Made, Denied: s.counts.Denied, Open: len(s.active.cancels), BytesIn: s.counts.BytesIn,
		ApprovalState: string(s.counts.Approval), Redactions: maps.Clone(s.counts.Redactions),
	}
}

// tally counts a call that has ended as made or as refused.
func (s *RunCalls) tally(made bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made {
		s.counts.Made++
	} else {
		s.counts.Denied++
	}
}

// Active returns the number of running calls.
func (s *RunCalls) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active.cancels)
}

// Used returns what the calls have used so far, apart from those that wait for approval.
func (s *RunCalls) Used() Used {
	asking := len(s.questions.waiting())
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.counts.Used
	used.Calls -= asking
	used.Redactions = maps.Clone(used.Redactions)
	return used
}

// resume continues the counts of another process.
func (s *RunCalls) resume(before Used) {
	before.Approval = cmp.Or(before.Approval, s.counts.Approval)
	s.counts.Used = before
}

// Asking returns the calls that wait for a person's approval, by Tag, with the end of their question; the zero time
// if it is not asked yet. They have done nothing so far.
func (s *RunCalls) Asking() map[string]time.Time { return s.questions.waiting() }

// met records the approval state of a call.
func (s *RunCalls) met(state approval.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Approval = approval.Worse(s.counts.Approval, state)
}

// waiting counts the calls that wait for people. Its mutex is held while changed is called, so that
// the notifications arrive in order.
type waiting struct {
	mu      sync.Mutex // is held while now changes, and guards changed
	now     atomic.Int64
	changed func(waiting bool)
}

func (w *waiting) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now.Add(int64(n))
	before := now - int64(n)
	if w.changed != nil && (before == 0) != (now == 0) {
		w.changed(now > 0)
	}
}

// Waiting returns the number of calls that wait for people. Unlike other methods it may be called from OnWait.
func (s *RunCalls) Waiting() int { return int(s.waiting.now.Load()) }

// parked calls wait while the run's clock is paused.
func (s *RunCalls) parked(wait func()) {
	s.waiting.add(+1)
	defer s.waiting.add(-1)
	wait()
}
