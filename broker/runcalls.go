package broker

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/redact"
)

// RunOptions say how the calls of one run go. The zero value is usable.
type RunOptions struct {
	// Redactor cleans results instead of the broker's; nil: the broker's does.
	Redactor *redact.Redactor
	// OnWait is called with true when the first call of the run begins to wait for a person,
	// and with false when the last one has stopped, so that the run's clock can stand
	// still meanwhile. It must not call the RunCalls. nil is not called.
	OnWait func(waiting bool)
	// Recording keeps every call with its answer; nil keeps nothing. One that fails
	// costs the run its replay, and nothing else.
	Recording Recording
	// Player answers the calls from a recording: no server is called and no person
	// is asked, and each call is recorded in the audit log as one that was answered so.
	// nil in a run that is no replay.
	Player *replay.Player
	// Admitted is what was decided about the run as a whole, whose calls then are no
	// steps of their own; nil where only its calls are decided about.
	Admitted *Admission
}

// Recording keeps what a run's calls were answered. *replay.Recorder is one.
// Answered may be called concurrently.
type Recording interface {
	Answered(e replay.Exchange) error
}

// RunCalls is the calls of one run. Its methods may be called concurrently.
type RunCalls struct {
	broker   *Broker
	identity Run
	opts     RunOptions
	snapshot *catalog.Snapshot
	facts    *sessionFacts
	limits   Limits              // in force when the run began; of the rates only that of the catalog
	slots    *semaphore.Weighted // one per call under way or unread
	waiting  waiting
	// questions are those to people.
	questions questions
	unread    backlog // answers that wait for the code to read them
	work      backlog // arguments of calls under way

	mu     sync.Mutex // guards all below
	counts runCounts
	active activeCalls

	failures failures
	searches *rate.Limiter // of the catalog
	loops    loopDetector
	flags    map[*catalog.Snapshot]map[string][]catalog.Flag // by policies.ToolID, once it was asked
}

// runCounts are what a run's calls came to so far.
type runCounts struct {
	calls      int
	bytesIn    int64
	bytesOut   int64
	state      approval.State
	redactions map[string]int
}

// activeCalls are the calls under way.
type activeCalls struct {
	closed  bool
	cancels map[string]context.CancelFunc // by ID
	idle    chan struct{}                 // closed when the last of them is over, once the run is closed
}

// Summary is what a run's calls came to.
type Summary struct {
	Calls         int            // calls that arrived, refused ones included
	Open          int            // calls that had not ended in time, though they were cancelled
	BytesIn       int64          // bytes of results that went into the sandbox
	ApprovalState string         // the most restrictive state any call met, a word of admission/approval
	Redactions    map[string]int // kind → count, over all results; nil for none
}

// Call carries one call from validation to answer. It returns when the call is
// over, or soon after ctx ends; what became of it is recorded either way.
func (s *RunCalls) Call(ctx context.Context, call Call) Answer {
	answer, read := s.CallUnread(ctx, call)
	read()
	return answer
}

// CallUnread is Call for an answer that takes its time to reach the code: until
// the caller says that it was read, it takes one of the run's places for calls
// and counts as unread. Calling read twice is fine.
func (s *RunCalls) CallUnread(ctx context.Context, call Call) (answer Answer, read func()) {
	r := &reserved{run: s}
	read = sync.OnceFunc(r.release)
	a := &attempt{run: s, broker: s.broker, call: call, id: telemetry.NewID("call"), began: s.broker.opts.Now(), reserved: r}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.enter(a, cancel) {
		return a.answerError(failf(errortype.Killed, "the run is over")), read
	}
	defer s.leave(a)
	defer a.releaseWork()
	if s.opts.Player != nil {
		answer = a.replayed(ctx)
	} else {
		answer = a.traced(ctx)
		s.keep(ctx, a.number, call, answer, a.held)
	}
	if answer.Error != nil {
		s.failed(*answer.Error)
	}
	return answer, read
}

// enter counts a call and gives it its number.
func (s *RunCalls) enter(a *attempt, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.calls++
	a.number = s.counts.calls
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

// closePatience is how long Close waits for calls that it has cancelled.
const closePatience = 10 * time.Second

// Close ends the calls that are still under way, waits until what became of
// them is recorded, and says what all calls came to. Calling it twice is fine,
// one time after the other.
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
		timer := time.NewTimer(closePatience)
		defer timer.Stop()
		select {
		case <-idle:
		case <-timer.C: // an Upstream or an Approver ignores that its context is cancelled
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	s.broker.closeFacts(s)
	return Summary{
		Calls: s.counts.calls, Open: len(s.active.cancels), BytesIn: s.counts.bytesIn,
		ApprovalState: string(s.counts.state), Redactions: maps.Clone(s.counts.redactions),
	}
}

// Active returns how many calls are under way.
func (s *RunCalls) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active.cancels)
}

// met notes how far a call got with asking.
func (s *RunCalls) met(state approval.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.state = approval.Worse(s.counts.state, state)
}

// waiting counts the calls that wait for people. Its own lock is held while
// changed is called, so that calls come in order.
type waiting struct {
	mu      sync.Mutex // guards both
	now     int
	changed func(waiting bool)
}

func (w *waiting) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.now
	w.now += n
	if w.changed != nil && (before == 0) != (w.now == 0) {
		w.changed(w.now > 0)
	}
}

// parked runs wait while the run's clock stands still.
func (s *RunCalls) parked(wait func()) {
	s.waiting.add(+1)
	defer s.waiting.add(-1)
	wait()
}
