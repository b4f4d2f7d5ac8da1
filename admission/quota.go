package admission

import (
	"context"
	"fmt"
)

// Usage is what the run and the session of a call have used before it.
type Usage struct {
	Limits       Limits // of the run, fixed when it started
	RunCalls     int    // calls of the run, this one not counted
	SessionCalls int    // calls of the session, this one not counted
	BytesOut     int64  // of the arguments of the run's calls, this one counted
	BytesIn      int64  // of the results of the run's calls
	Repeats      int    // how often this call has returned the same result in a row
	// Done is closed when the run ends, which ends the wait of a call for a rate. It may be nil.
	Done <-chan struct{}
}

// quota checks a call against the limits of its run and its session and the rates of its server and
// its tool. A refused call counts too.
func (s *Service) quota(ctx context.Context, act Act) *Error {
	u := act.Usage
	l := u.Limits
	switch {
	case u.RunCalls >= l.Calls:
		return exceed(limitCalls, OverBudget,
			"the run has made its %d calls; do more with each, or split the work into several runs", l.Calls)
	case u.SessionCalls >= l.SessionCalls:
		return exceed(limitSessionCalls, OverBudget, "the session has made its %d calls", l.SessionCalls)
	case u.BytesOut > l.BytesOut:
		return exceed(limitBytesOut, OverBudget, "the run has sent more than %d bytes of arguments", l.BytesOut)
	case u.BytesIn >= l.BytesIn:
		return exceed(LimitBytesIn, OverBudget,
			"the run has received its %d bytes of results; filter earlier", l.BytesIn)
	case u.Repeats >= l.Repeats:
		return exceed(limitRepeats, Looping,
			"this very call has returned the same result %d times in this run; to wait for a change, sleep longer "+
				"between calls and ask less often, or return what there is and look again in a later run; else "+
				"change the arguments, or stop", u.Repeats)
	}
	return s.rate(ctx, act)
}

// rate checks a call against the current rates of its server and its tool. It waits up to MaxRateWait
// for them.
func (s *Service) rate(ctx context.Context, act Act) *Error {
	rates := CallRates(&s.buckets)
	if g := s.agents.Load(); g != nil && g.opts.CallRates != nil {
		rates = g.opts.CallRates
	}
	l, now := s.Rules().Limits, s.opts.Now()
	server, tool := act.Request.Tool.ServerID, act.Request.Tool.Name
	rate, name := l.serverRate(server)
	ofServer, ok := rates.Take(ctx, "server\x00"+server, rate, now)
	if !ok {
		return exceed(name, TooOften, "server %q is called too often; try again in %v", server, ofServer)
	}
	rate, name = l.toolRate(server, tool)
	ofTool, ok := rates.Take(ctx, "tool\x00"+server+"\x00"+tool, rate, now)
	if !ok {
		return exceed(name, TooOften, "tool %q is called too often; try again in %v", tool, ofTool)
	}
	Pause(max(ofServer, ofTool), act.Usage.Done)
	return nil
}

func exceed(limit string, reason Reason, format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...), Reason: reason, Limit: limit, Retryable: reason == TooOften}
}
