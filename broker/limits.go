package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/airlock-mcp/airlock/policies"
)

// Limits bound what code can do through tools. A zero member means the value
// of DefaultLimits; code can raise none of them.
type Limits struct {
	Calls        int           // of one run
	SessionCalls int           // of one session of the host, over all its runs
	Concurrent   int           // calls of one run at a time; more wait
	BytesIn      int64         // of all results into one run
	BytesOut     int64         // of all arguments out of one run
	ResultBytes  int64         // of one result; a frame of the socket holds 16 MiB
	CallTimeout  time.Duration // until a server must have answered
	// Repeats is how often a run may make one call, with the same arguments, and
	// get the same result, before that counts as a loop.
	Repeats int
	// Rate is how many calls one server takes in a second, over all runs, with
	// bursts of up to Burst; ToolRate and ToolBurst are the same for one tool.
	Rate      float64
	Burst     int
	ToolRate  float64
	ToolBurst int
}

// DefaultLimits are generous to honest code.
func DefaultLimits() Limits {
	return Limits{
		Calls: 1000, SessionCalls: 100_000, Concurrent: 16,
		BytesIn: 1 << 30, BytesOut: 256 << 20, ResultBytes: 12 << 20,
		CallTimeout: time.Minute, Repeats: 50, Rate: 200, Burst: 1000, ToolRate: 200, ToolBurst: 1000,
	}
}

func (l Limits) withDefaults() (Limits, error) {
	d := DefaultLimits()
	for _, pair := range []struct {
		name  string
		set   *int
		other int
	}{
		{"Calls", &l.Calls, d.Calls}, {"SessionCalls", &l.SessionCalls, d.SessionCalls}, {"Concurrent", &l.Concurrent, d.Concurrent},
		{"Repeats", &l.Repeats, d.Repeats}, {"Burst", &l.Burst, d.Burst}, {"ToolBurst", &l.ToolBurst, d.ToolBurst},
	} {
		if *pair.set < 0 {
			return l, fmt.Errorf("the limit %s is negative", pair.name)
		}
		if *pair.set == 0 {
			*pair.set = pair.other
		}
	}
	if l.BytesIn < 0 || l.BytesOut < 0 || l.ResultBytes < 0 || l.CallTimeout < 0 || l.Rate < 0 || l.ToolRate < 0 {
		return l, fmt.Errorf("a limit is negative")
	}
	l.BytesIn = orDefault(l.BytesIn, d.BytesIn)
	l.BytesOut = orDefault(l.BytesOut, d.BytesOut)
	l.ResultBytes = orDefault(l.ResultBytes, d.ResultBytes)
	l.CallTimeout = orDefault(l.CallTimeout, d.CallTimeout)
	l.Rate = orDefault(l.Rate, d.Rate)
	l.ToolRate = orDefault(l.ToolRate, d.ToolRate)
	return l, nil
}

func orDefault[T comparable](set, other T) T {
	var zero T
	if set == zero {
		return other
	}
	return set
}

// limit holds the call to its run's and its session's budgets and to the rates
// of its server and its tool. A refused call has used up its place.
func (a *attempt) limit(context.Context) *failure {
	s, l := a.session, a.broker.opts.Limits
	calls, servers := s.facts.begin()
	s.mu.Lock()
	s.bytesOut += int64(len(a.arguments))
	runCalls, bytesOut, bytesIn := s.calls, s.bytesOut, s.bytesIn
	repeats := s.loops.times(a.callKey())
	s.mu.Unlock()
	a.before = policies.Session{Calls: calls, RunCalls: runCalls - 1, Servers: servers}
	var f *failure
	switch {
	case runCalls > l.Calls:
		f = failf(typeBudget, "the run has made its %d calls; do more with each, or split the work into several runs", l.Calls)
	case calls >= l.SessionCalls:
		f = failf(typeBudget, "the session has made its %d calls", l.SessionCalls)
	case bytesOut > l.BytesOut:
		f = failf(typeBudget, "the run has sent more than %d bytes of arguments", l.BytesOut)
	case bytesIn > l.BytesIn:
		f = failf(typeBudget, "the run has received more than %d bytes of results; filter earlier", l.BytesIn)
	case repeats >= l.Repeats:
		f = failf(typeLoop, "this very call has returned the same result %d times in this run; change something, or stop", repeats)
	default:
		f = a.rate(l)
	}
	if f != nil {
		f.detail = f.Message
	}
	return f
}

// rate holds the call to the rates of its server and its tool.
func (a *attempt) rate(l Limits) *failure {
	now := a.broker.opts.Now()
	if wait := a.broker.rates.take("server\x00"+a.tool.ServerID, l.Rate, l.Burst, now); wait > 0 {
		return failf(typeRateLimit, "server %q is called too often; try again in %v", a.tool.ServerID, wait.Round(time.Millisecond)).retryable()
	}
	if wait := a.broker.rates.take("tool\x00"+a.tool.ServerID+"\x00"+a.tool.Name, l.ToolRate, l.ToolBurst, now); wait > 0 {
		return failf(typeRateLimit, "tool %q is called too often; try again in %v", a.tool.Name, wait.Round(time.Millisecond)).retryable()
	}
	return nil
}

// slot waits for one of the run's places for calls under way.
func (a *attempt) slot(ctx context.Context) (release func(), fail *failure) {
	select {
	case a.session.slots <- struct{}{}:
		return func() { <-a.session.slots }, nil
	case <-ctx.Done():
		return nil, a.cut(ctx)
	}
}

// callKey is equal for calls of one tool with the same arguments.
func (a *attempt) callKey() string { return a.tool.Digest + "\x00" + a.hash }

// received adds to the bytes that went into the sandbox.
func (s *Session) received(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytesIn += int64(n)
}

// account adds a result to what the run has received.
func (s *Session) account(key string, result json.RawMessage, redactions map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytesIn += int64(len(result))
	s.loops.see(key, result)
	for kind, n := range redactions {
		if s.redactions == nil {
			s.redactions = map[string]int{}
		}
		s.redactions[kind] += n
	}
}
