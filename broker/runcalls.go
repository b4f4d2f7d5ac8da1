package broker

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/broker/redact"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Session is the calls of one run. Its methods may be called concurrently.
type Session struct {
	broker   *Broker
	run      Run
	snapshot *catalog.Snapshot
	facts    *facts
	slots    chan struct{}  // one per call under way or unread
	tape     Tape           // see Record; nil records nothing
	player   *replay.Player // answers instead of servers; nil in a run that is no replay
	redactor *redact.Redactor
	wait     waits
	unread   backlog // answers that wait for the code to read them
	work     backlog // arguments of calls under way

	mu         sync.Mutex // guards all below
	closed     bool
	cancels    map[string]context.CancelFunc // of the calls under way, by ID
	idle       chan struct{}                 // closed when the last of them is over, once the session is closed
	failures   failures
	calls      int
	looks      bucket // into the catalog
	bytesIn    int64
	bytesOut   int64
	loops      loopDetector
	flags      map[string][]catalog.Flag // by policies.ToolID, once it was asked
	state      approval.State
	redactions map[string]int
}

// Summary is what a run's calls came to.
type Summary struct {
	Calls         int            // calls that arrived, refused ones included
	Open          int            // calls that had not ended in time, though they were cancelled
	BytesIn       int64          // bytes of results that went into the sandbox
	ApprovalState string         // the most restrictive state any call met, a word of broker/approval
	Redactions    map[string]int // kind → count, over all results; nil for none
}

// OnWait registers a function that hears true when the first call of the run
// begins to wait for a person, and false when the last one has stopped, so that
// the run's clock can stand still meanwhile. It must not call the session.
// Register before the first call.
func (s *Session) OnWait(changed func(waiting bool)) {
	s.wait.mu.Lock()
	defer s.wait.mu.Unlock()
	s.wait.changed = changed
}

// RedactWith has results cleaned by a redactor of the run's own, instead of the
// broker's. Call it before the first call.
func (s *Session) RedactWith(redactor *redact.Redactor) { s.redactor = redactor }

// Tape keeps what a run's calls were answered. *replay.Recording is one.
// Answered may be called concurrently.
type Tape interface {
	Answered(e replay.Exchange) error
}

// Record keeps every call of the run, with its answer, on a tape. A tape that
// fails costs the run its replay, and nothing else. Call it before the first call.
func (s *Session) Record(tape Tape) { s.tape = tape }

// Call carries one call from validation to answer. It returns when the call is
// over, or soon after ctx ends; what became of it is recorded either way.
func (s *Session) Call(ctx context.Context, call Call) Answer {
	answer, read := s.CallUnread(ctx, call)
	read()
	return answer
}

// CallUnread is Call for an answer that takes its time to reach the code: until
// the caller says that it was read, it takes one of the run's places for calls
// and counts as unread. Calling read twice is fine.
func (s *Session) CallUnread(ctx context.Context, call Call) (answer Answer, read func()) {
	t := &taken{session: s}
	read = sync.OnceFunc(t.giveBack)
	a := &attempt{session: s, broker: s.broker, call: call, id: telemetry.NewID("call"), began: s.broker.opts.Now(), taken: t}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.enter(a, cancel) {
		return a.answerError(failf(typeKilled, "the run is over")), read
	}
	defer s.leave(a)
	defer a.putDown()
	if s.player != nil {
		answer = a.replayed(ctx)
	} else {
		answer = a.carry(ctx)
		s.keep(ctx, a.number, call, answer)
	}
	if answer.Error != nil {
		s.failed(*answer.Error)
	}
	return answer, read
}

// enter counts a call and gives it its number.
func (s *Session) enter(a *attempt, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	a.number = s.calls
	if s.closed {
		return false
	}
	s.cancels[a.id] = cancel
	return true
}

func (s *Session) leave(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cancels, a.id)
	if s.idle != nil && len(s.cancels) == 0 {
		close(s.idle)
		s.idle = nil
	}
}

// closePatience is how long Close waits for calls that it has cancelled.
const closePatience = 10 * time.Second

// Close ends the calls that are still under way, waits until what became of
// them is recorded, and says what all calls came to. Calling it twice is fine,
// one time after the other.
func (s *Session) Close() Summary {
	s.mu.Lock()
	s.closed = true
	for _, cancel := range s.cancels {
		cancel()
	}
	if len(s.cancels) > 0 {
		idle := make(chan struct{})
		s.idle = idle
		s.mu.Unlock()
		timer := time.NewTimer(closePatience)
		defer timer.Stop()
		select {
		case <-idle:
		case <-timer.C: // somebody broke the promise to heed a cancelled context
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	return Summary{
		Calls: s.calls, Open: len(s.cancels), BytesIn: s.bytesIn,
		ApprovalState: string(s.state), Redactions: maps.Clone(s.redactions),
	}
}

// met notes how far a call got with asking.
func (s *Session) met(state approval.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = approval.Worse(s.state, state)
}

// waits counts the calls that wait for people. Its own lock is held while
// changed is called, so that calls come in order.
type waits struct {
	mu      sync.Mutex // guards both
	now     int
	changed func(waiting bool)
}

func (w *waits) shift(by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.now
	w.now += by
	if w.changed != nil && (before == 0) != (w.now == 0) {
		w.changed(w.now > 0)
	}
}

// parked runs wait off the run's clock.
func (s *Session) parked(wait func()) {
	s.wait.shift(+1)
	defer s.wait.shift(-1)
	wait()
}
