package broker

import (
	"context"
	"maps"
	"sync"

	"github.com/airlock-mcp/airlock/broker/approval"
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
	slots    chan struct{}  // one per call under way
	tape     Tape           // see Record; nil records nothing
	player   *replay.Player // answers instead of servers; nil in a run that is no replay
	inFlight sync.WaitGroup
	wait     waits

	mu         sync.Mutex // guards all below
	closed     bool
	cancels    map[string]context.CancelFunc // of the calls under way, by ID
	calls      int
	bytesIn    int64
	bytesOut   int64
	loops      loopDetector
	flagged    map[string]bool // by policies.ToolID, once it was asked
	state      approval.State
	redactions map[string]int
}

// Summary is what a run's calls came to.
type Summary struct {
	Calls         int            // calls that arrived, refused ones included
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
	a := &attempt{session: s, broker: s.broker, call: call, id: telemetry.NewID("call"), began: s.broker.opts.Now()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	number, ok := s.enter(a.id, cancel)
	if !ok {
		return a.answerError(failf(typeKilled, "the run is over"))
	}
	defer s.leave(a.id)
	if s.player != nil {
		return a.replayed(ctx)
	}
	answer := a.carry(ctx)
	s.keep(ctx, number, call, answer)
	return answer
}

// enter counts a call and returns its number in the run, from 1.
func (s *Session) enter(id string, cancel context.CancelFunc) (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.closed {
		return s.calls, false
	}
	s.cancels[id] = cancel
	s.inFlight.Add(1)
	return s.calls, true
}

func (s *Session) leave(id string) {
	s.mu.Lock()
	delete(s.cancels, id)
	s.mu.Unlock()
	s.inFlight.Done()
}

// Close ends the calls that are still under way, waits until what became of
// them is recorded, and says what all calls came to. Calling it twice is fine.
func (s *Session) Close() Summary {
	s.mu.Lock()
	s.closed = true
	cancels := maps.Clone(s.cancels)
	s.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	s.inFlight.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Summary{Calls: s.calls, BytesIn: s.bytesIn, ApprovalState: string(s.state), Redactions: maps.Clone(s.redactions)}
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
