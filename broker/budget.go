package broker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
)

// maxWork is the maximum number of argument bytes of one run that are processed concurrently.
// Decoded arguments can take forty times as much memory; the other calls wait with undecoded
// arguments.
const maxWork = 4 << 20

// reserveWork waits until the arguments of this call fit beside those of the run's other calls.
func (a *attempt) reserveWork(ctx context.Context) *failure {
	n := int64(len(a.call.Arguments))
	if err := a.run.work.add(ctx, n, maxWork, 0); err != nil {
		return a.cut(ctx)
	}
	a.work = n
	return nil
}

// releaseWork is called when the call has ended.
func (a *attempt) releaseWork() { a.run.work.remove(a.work) }

// limit checks the call against the budgets of its run and its session and the rates of its server
// and its tool. A refused call counts too.
func (a *attempt) limit(context.Context) *failure {
	s, l := a.run, a.run.limits
	calls, servers := s.facts.begin()
	s.mu.Lock()
	s.counts.bytesOut += int64(len(a.arguments))
	bytesOut, bytesIn := s.counts.bytesOut, s.counts.bytesIn
	repeats := s.loops.times(a.callKey())
	s.mu.Unlock()
	a.before = policies.Session{Calls: calls, RunCalls: a.number - 1, Servers: servers}
	switch {
	case a.number > l.Calls:
		return exceeded(limitCalls, errortype.Budget, "the run has made its %d calls; do more with each, or split the work into several runs", l.Calls)
	case calls >= l.SessionCalls:
		return exceeded(limitSessionCalls, errortype.Budget, "the session has made its %d calls", l.SessionCalls)
	case bytesOut > l.BytesOut:
		return exceeded(limitBytesOut, errortype.Budget, "the run has sent more than %d bytes of arguments", l.BytesOut)
	case bytesIn >= l.BytesIn:
		return exceeded(limitBytesIn, errortype.Budget, "the run has received its %d bytes of results; filter earlier", l.BytesIn)
	case repeats >= l.Repeats:
		return exceeded(limitRepeats, errortype.Loop, "this very call has returned the same result %d times in this run; to wait for a change, sleep longer between calls and ask less often, or return what there is and look again in a later run; else change the arguments, or stop", repeats)
	}
	return a.rate(a.broker.Limits())
}

// rate checks the call against the rates of its server and its tool.
func (a *attempt) rate(l Limits) *failure {
	now, server, tool := a.broker.opts.Now(), a.tool.ServerID, a.tool.Name
	rate, name := l.serverRate(server)
	if wait := a.broker.rates.takeToken("server\x00"+server, rate, now); wait > 0 {
		return exceeded(name, errortype.RateLimit, "server %q is called too often; try again in %v", server, soon(wait)).retryable()
	}
	rate, name = l.toolRate(server, tool)
	if wait := a.broker.rates.takeToken("tool\x00"+server+"\x00"+tool, rate, now); wait > 0 {
		return exceeded(name, errortype.RateLimit, "tool %q is called too often; try again in %v", tool, soon(wait)).retryable()
	}
	return nil
}

// soon rounds a wait up, so that a retry after it is not too early.
func soon(wait time.Duration) time.Duration {
	return (wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// slot waits for one of the run's slots for concurrent calls, and until the code has read enough of
// its earlier answers.
func (a *attempt) slot(ctx context.Context) *failure {
	if err := a.run.acquireSlot(ctx); err != nil {
		return a.cut(ctx)
	}
	a.reserved.slot = true
	return nil
}

// acquireSlot reserves one of the run's slots; its only error is that of ctx.
func (s *RunCalls) acquireSlot(ctx context.Context) error {
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return err
	}
	limits := s.limits
	err := s.unread.room(ctx, limits.UnreadBytes-limits.ResultBytes) // for the largest result
	if err == nil {
		err = ctx.Err() // a slot freed by the end of the run does not count
	}
	if err != nil {
		s.slots.Release(1)
	}
	return err
}

// readPatience is how long a result waits for code that does not read at all, before it is
// withheld.
const readPatience = 5 * time.Second

// keepUnread adds the result to the unread answers, as soon as it fits.
func (a *attempt) keepUnread(ctx context.Context) *failure {
	most, size := a.run.limits.UnreadBytes, int64(len(a.result))
	err := a.run.unread.add(ctx, size, most, readPatience)
	switch {
	case ctx.Err() != nil:
		return failf(errortype.Killed, "the run ended before it had room for the result").because(context.Cause(ctx))
	case err != nil:
		return exceeded(limitUnreadBytes, errortype.Budget,
			"the call was made, but %d bytes of answers wait to be read already, so its result is withheld; read the answers of calls before making more", most)
	}
	a.reserved.bytes = size
	return nil
}

// receive counts the result against the limit of bytes into the run.
func (a *attempt) receive(context.Context) *failure {
	most := a.run.limits.BytesIn
	if !a.run.account(a.callKey(), a.result, redact.Counts(a.removed), most) {
		return exceeded(limitBytesIn, errortype.Budget,
			"the call was made, but its result is withheld: with it the run would have received more than %d bytes of results; filter earlier", most)
	}
	return nil
}

// reserved holds the limits of a run that a call uses until its answer is read. It has no other
// references, so that a withheld result can be freed at once.
type reserved struct {
	run   *RunCalls
	slot  bool
	bytes int64 // unread
}

func (r *reserved) release() {
	r.run.unread.remove(r.bytes)
	if r.slot {
		r.run.slots.Release(1)
	}
}

// callKey returns a key that is equal for calls of one tool with the same arguments.
func (a *attempt) callKey() string { return a.tool.Digest + "\x00" + a.hash }

// received counts bytes sent into the sandbox.
func (s *RunCalls) received(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.bytesIn += int64(n)
}

// account adds a result to the bytes that the run has received. It reports whether the total is at
// most most; otherwise the result must not be sent.
func (s *RunCalls) account(key string, result json.RawMessage, redactions map[string]int, most int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops.see(key, result)
	if s.counts.bytesIn+int64(len(result)) > most {
		return false
	}
	s.counts.bytesIn += int64(len(result))
	for kind, n := range redactions {
		if s.counts.redactions == nil {
			s.counts.redactions = map[string]int{}
		}
		s.counts.redactions[kind] += n
	}
	return true
}

// Look starts a catalog lookup, subject to the run's rate for lookups and its slots for calls. The
// caller must call done when the answer was sent. refused is the error to return to the code.
func (s *RunCalls) Look(ctx context.Context) (done func(), refused *Error) {
	if wait := takeToken(s.searches, s.broker.opts.Now()); wait > 0 {
		return nil, s.Tell(failf(errortype.RateLimit, "the catalog is searched too often; try again in %v", soon(wait)).retryable().Error)
	}
	if err := s.acquireSlot(ctx); err != nil {
		return nil, &failf(errortype.Killed, "the run is over").Error
	}
	return func() { s.slots.Release(1) }, nil
}
