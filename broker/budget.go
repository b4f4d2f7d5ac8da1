package broker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/errortype"
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

// count counts the call, and collects what its run and its session have used before it. A refused
// call counts too.
func (a *attempt) count(context.Context) *failure {
	s := a.run
	a.before = s.facts.begin(a.broker.opts.Logger, a.rules.Policies)
	a.before.RunCalls = a.number - 1
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.BytesOut += int64(len(a.arguments))
	a.usage = admission.Usage{
		Limits: s.limits, RunCalls: a.number - 1, SessionCalls: a.before.Calls, BytesOut: s.counts.BytesOut,
		BytesIn: s.counts.BytesIn, Repeats: s.loops.times(a.callKey()),
	}
	return nil
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
	err := s.unread.waitBelow(ctx, limits.UnreadBytes-limits.ResultBytes) // for the largest result
	if err == nil {
		err = ctx.Err() // a slot freed by the end of the run does not count
	}
	if err != nil {
		s.slots.Release(1)
	}
	return err
}

// readTimeout is how long a result waits for code that does not read at all, before it is
// withheld.
const readTimeout = 5 * time.Second

// keepUnread adds the result to the unread answers, as soon as it fits.
func (a *attempt) keepUnread(ctx context.Context) *failure {
	most, size := a.run.limits.UnreadBytes, int64(len(a.result))
	if a.isLarge() {
		return nil // it is in a file
	}
	err := a.run.unread.add(ctx, size, most, readTimeout)
	switch {
	case ctx.Err() != nil:
		return failf(errortype.Killed, "the run ended before it could receive the result").because(context.Cause(ctx))
	case err != nil:
		return exceeded(admission.LimitUnreadBytes, errortype.Budget,
			"the call was made, but %d bytes of answers wait to be read already, so its result is withheld; read the "+
				"answers of calls before making more", most)
	}
	a.reserved.bytes = size
	return nil
}

// receive counts the result against the limit of bytes into the run.
func (a *attempt) receive(context.Context) *failure {
	most := a.run.limits.BytesIn
	if !a.run.account(a.callKey(), a.result, redact.Counts(a.removed), most) {
		return exceeded(admission.LimitBytesIn, errortype.Budget,
			"the call was made, but its result is withheld: with it the run would have received more than %d bytes "+
				"of results; filter earlier", most)
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
	s.counts.BytesIn += int64(n)
}

// account adds a result to the bytes that the run has received. It reports whether the total is at
// most most; otherwise the result must not be sent.
func (s *RunCalls) account(key string, result json.RawMessage, redactions map[string]int, most int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops.see(key, result)
	if s.counts.BytesIn+int64(len(result)) > most {
		return false
	}
	s.counts.BytesIn += int64(len(result))
	for kind, n := range redactions {
		if s.counts.Redactions == nil {
			s.counts.Redactions = map[string]int{}
		}
		s.counts.Redactions[kind] += n
	}
	return true
}

// Look starts a catalog lookup, subject to the run's rate for lookups and its slots for calls. The
// caller must call done when the answer was sent. refused is the error to return to the code.
func (s *RunCalls) Look(ctx context.Context) (done func(), refused *Error) {
	wait, ok := s.searches.Take(s.broker.opts.Now())
	if !ok {
		return nil, s.Tell(failf(errortype.RateLimit, "the catalog is searched too often; try again in %v",
			wait).retryable().Error)
	}
	admission.Pause(wait, ctx.Done())
	if err := s.acquireSlot(ctx); err != nil {
		return nil, &failf(errortype.Killed, "the run is over").Error
	}
	return func() { s.slots.Release(1) }, nil
}
