package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// kept has the turn and the file of a result of more than limits.resultBytes.
type kept struct {
	turn *quota.Reservation // nil for one that fits an answer
	file string             // its path in the sandbox; empty if it is in no file
}

// mostBytes returns the maximum size of the result.
func (a *attempt) mostBytes() int64 {
	limits := a.run.limits
	if a.run.opts.Keep == nil {
		return limits.ResultBytes
	}
	return max(limits.ResultBytes, limits.LargeResultBytes)
}

// isLarge reports whether the result does not fit into an answer.
func (a *attempt) isLarge() bool { return int64(len(a.result)) > a.run.limits.ResultBytes }

// takeTurn waits until no other large result is being redacted and stored, which takes several times its memory.
func (a *attempt) takeTurn(ctx context.Context) *failure {
	var err error
	if a.turn, err = a.broker.large.Wait(ctx, a.run.identity.Caller.Account()); err != nil {
		return failf(errortype.Killed, "the run ended before it could receive the result").because(err)
	}
	return nil
}

// endTurn is called when the call has ended.
func (a *attempt) endTurn() {
	if a.turn != nil {
		a.turn.Release()
	}
}

// keepLarge stores a large result as a file. That of a tool that failed is dropped; its message remains.
func (a *attempt) keepLarge(ctx context.Context) *failure {
	if !a.isLarge() || a.isError {
		return nil
	}
	path, problem := a.run.opts.Keep(ctx, a.call, a.result)
	if problem != "" {
		return exceeded(admission.LimitResultBytes, errortype.Output,
			"the result has %d bytes, more than the %d that one call may return, and is not kept as a file: %s; %s",
			len(a.result), a.run.limits.ResultBytes, problem, upstream.AskForLess)
	}
	a.file = path
	return nil
}

// keptAnswer returns the answer for a result in a file. The call has succeeded, but the code cannot go on as if it had
// the result.
func (a *attempt) keptAnswer() Answer {
	return Answer{Error: &Error{
		Type: errortype.Output, Source: errortype.SourceBroker, CallID: a.id, File: a.file,
		Message: fmt.Sprintf("the result has %d bytes, more than the %d that one call may return; all of it is in %s: "+
			"read that file, and return a summary", len(a.result), a.run.limits.ResultBytes, a.file),
	}}
}

// errKept is the reason why a run with a result in a file cannot be replayed.
var errKept = errors.New("a result was kept as a file of the session, which is not part of a recording")
