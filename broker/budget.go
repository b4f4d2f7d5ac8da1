package broker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/broker/redact"
	"github.com/airlock-mcp/airlock/policies"
)

// maxWork is how many bytes of arguments of one run are worked on at a time.
// Decoded they can take forty times that; the other calls wait, as bytes.
const maxWork = 4 << 20

// takeUp waits until the run's other calls leave room for the arguments of this one.
func (a *attempt) takeUp(ctx context.Context) *failure {
	n := int64(len(a.call.Arguments))
	if err := a.session.work.add(ctx, n, maxWork, 0); err != nil {
		return a.cut(ctx)
	}
	a.work = n
	return nil
}

// putDown is called when the call is over.
func (a *attempt) putDown() { a.session.work.remove(a.work) }

// limit holds the call to its run's and its session's budgets and to the rates
// of its server and its tool. A refused call has used up its place.
func (a *attempt) limit(context.Context) *failure {
	s, l := a.session, a.broker.opts.Limits
	calls, servers := s.facts.begin()
	s.mu.Lock()
	s.bytesOut += int64(len(a.arguments))
	bytesOut, bytesIn := s.bytesOut, s.bytesIn
	repeats := s.loops.times(a.callKey())
	s.mu.Unlock()
	a.before = policies.Session{Calls: calls, RunCalls: a.number - 1, Servers: servers}
	switch {
	case a.number > l.Calls:
		return exceeded(limitCalls, typeBudget, "the run has made its %d calls; do more with each, or split the work into several runs", l.Calls)
	case calls >= l.SessionCalls:
		return exceeded(limitSessionCalls, typeBudget, "the session has made its %d calls", l.SessionCalls)
	case bytesOut > l.BytesOut:
		return exceeded(limitBytesOut, typeBudget, "the run has sent more than %d bytes of arguments", l.BytesOut)
	case bytesIn >= l.BytesIn:
		return exceeded(limitBytesIn, typeBudget, "the run has received its %d bytes of results; filter earlier", l.BytesIn)
	case repeats >= l.Repeats:
		return exceeded(limitRepeats, typeLoop, "this very call has returned the same result %d times in this run; change something, or stop", repeats)
	}
	return a.rate(l)
}

// rate holds the call to the rates of its server and its tool.
func (a *attempt) rate(l Limits) *failure {
	now, server, tool := a.broker.opts.Now(), a.tool.ServerID, a.tool.Name
	rate, name := l.serverRate(server)
	if wait := a.broker.rates.take("server\x00"+server, rate, now); wait > 0 {
		return exceeded(name, typeRateLimit, "server %q is called too often; try again in %v", server, soon(wait)).retryable()
	}
	rate, name = l.toolRate(server, tool)
	if wait := a.broker.rates.take("tool\x00"+server+"\x00"+tool, rate, now); wait > 0 {
		return exceeded(name, typeRateLimit, "tool %q is called too often; try again in %v", tool, soon(wait)).retryable()
	}
	return nil
}

// soon rounds a wait up, so that nobody comes back too early.
func soon(wait time.Duration) time.Duration {
	return (wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// slot waits for one of the run's places for calls under way, and until the code
// has read enough of its former answers.
func (a *attempt) slot(ctx context.Context) *failure {
	if err := a.session.place(ctx); err != nil {
		return a.cut(ctx)
	}
	a.taken.place = true
	return nil
}

// place takes one of the run's places; its only error is that of ctx.
func (s *Session) place(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	limits := s.broker.opts.Limits
	err := s.unread.room(ctx, limits.UnreadBytes-limits.ResultBytes) // for the largest result
	if err == nil {
		err = ctx.Err() // a place that the end of the run has freed is none
	}
	if err != nil {
		<-s.slots
	}
	return err
}

// readPatience is how long a result waits for code that reads nothing at all,
// before it is withheld.
const readPatience = 5 * time.Second

// hold makes the result one of the answers that wait to be read, as soon as
// there is room for it.
func (a *attempt) hold(ctx context.Context) *failure {
	most, size := a.broker.opts.Limits.UnreadBytes, int64(len(a.result))
	err := a.session.unread.add(ctx, size, most, readPatience)
	switch {
	case ctx.Err() != nil:
		return failf(typeKilled, "the run ended before it had room for the result").because(context.Cause(ctx))
	case err != nil:
		return exceeded(limitUnreadBytes, typeBudget,
			"the call was made, but %d bytes of answers wait to be read already, so its result is withheld; read the answers of calls before making more", most)
	}
	a.taken.bytes = size
	return nil
}

// receive counts the result against what may go into the run.
func (a *attempt) receive(context.Context) *failure {
	most := a.broker.opts.Limits.BytesIn
	if !a.session.account(a.callKey(), a.result, redact.Counts(a.removed), most) {
		return exceeded(limitBytesIn, typeBudget,
			"the call was made, but its result is withheld: with it the run would have received more than %d bytes of results; filter earlier", most)
	}
	return nil
}

// taken is what a call takes of its run's limits until its answer was read. It
// holds on to nothing else, so that a result that is withheld can go at once.
type taken struct {
	session *Session
	place   bool
	bytes   int64 // unread
}

func (t *taken) giveBack() {
	t.session.unread.remove(t.bytes)
	if t.place {
		<-t.session.slots
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

// account adds a result to what the run has received. It reports whether that
// is within most bytes; otherwise the result must not go in.
func (s *Session) account(key string, result json.RawMessage, redactions map[string]int, most int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops.see(key, result)
	if s.bytesIn+int64(len(result)) > most {
		return false
	}
	s.bytesIn += int64(len(result))
	for kind, n := range redactions {
		if s.redactions == nil {
			s.redactions = map[string]int{}
		}
		s.redactions[kind] += n
	}
	return true
}

// Look begins a look into the catalog, held to the run's rate for that and to
// its places for calls. The caller calls done when the answer has left; an error
// is what the code is to be told instead.
func (s *Session) Look(ctx context.Context) (done func(), refused *Error) {
	s.mu.Lock()
	wait := s.looks.take(s.broker.opts.Limits.CatalogRate, s.broker.opts.Now())
	s.mu.Unlock()
	if wait > 0 {
		return nil, &failf(typeRateLimit, "the catalog is searched too often; try again in %v", soon(wait)).retryable().Error
	}
	if err := s.place(ctx); err != nil {
		return nil, &failf(typeKilled, "the run is over").Error
	}
	return func() { <-s.slots }, nil
}
