package broker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
)

// attempt is one call while it is carried out. Each stage adds what it found out.
type attempt struct {
	run      *RunCalls
	broker   *Broker
	call     Call
	id       string // call_…
	number   int    // of the run's calls, from 1
	began    time.Time
	reserved *reserved // slot, keepUnread: what it uses of the run's limits
	work     int64     // reserveWork: bytes of arguments

	found
	parsed
	ruled
	asked
	answered
}

// found is what find finds out.
type found struct {
	tool     catalog.Tool
	rules    *Rules // in force when the call arrived
	settings policies.Settings
}

// parsed is what validate finds out.
type parsed struct {
	arguments json.RawMessage // the bytes that are sent
	input     map[string]any  // the same, decoded
	hash      string          // keyed, over arguments
}

// ruled is what limit and decide find out.
type ruled struct {
	before policies.Session // what happened before this call
	engine *policies.Engine
	ruling policies.Decision
	grant  AgentGrant // of an agent's call that is permitted; else nil
}

// asked is what approve finds out.
type asked struct {
	approval approval.State
	verdict  approval.Verdict
}

// answered is what the acting stages find out.
type answered struct {
	result  json.RawMessage  // callServer, then validated and redacted
	isError bool             // validateOutput: the tool says that it failed
	removed []redact.Finding // redact
	held    int              // redact: how many credentials were looked for
}

// stage is one step of a call; a failure ends it.
type stage func(*attempt, context.Context) *failure

// Identification came first: the session a call arrives on is its run. Then
// these stages may refuse it, in this order; none of them acts.
func deciding() []stage {
	return []stage{(*attempt).find, (*attempt).reserveWork, (*attempt).validate, (*attempt).limit, (*attempt).decide, (*attempt).approve}
}

// The last stages act, and check what came back.
func acting() []stage {
	return []stage{(*attempt).callServer, (*attempt).validateOutput, (*attempt).redact, (*attempt).keepUnread, (*attempt).receive, (*attempt).toolFailure}
}

// carry takes a call through all stages. Between deciding and acting stands the
// durable intent: without it nothing happens.
func (a *attempt) carry(ctx context.Context) Answer {
	fail := a.admit(ctx)
	if fail != nil {
		fail.refused = true
	} else if fail = a.ready(ctx); fail == nil {
		fail = a.act(ctx)
	}
	if fail != nil { // servers have a part in what some messages say
		message, found := a.run.opts.Redactor.Held([]byte(fail.Message))
		fail.Message, a.removed = string(message), append(a.removed, found...)
	}
	a.endGrant(ctx, fail == nil || !fail.refused)
	if unrecorded := a.conclude(ctx, fail); unrecorded != nil {
		fail = unrecorded
	}
	return a.answer(ctx, fail)
}

// admit takes the call through the deciding stages, as long as the run goes on.
func (a *attempt) admit(ctx context.Context) *failure {
	for _, next := range deciding() {
		if fail := next(a, ctx); fail != nil {
			return fail
		}
		if ctx.Err() != nil {
			return a.cut(ctx)
		}
	}
	return nil
}

// ready takes the call from its decision to its intent: a slot, the definition
// that was decided about and the caller's credential still in force, and the record.
func (a *attempt) ready(ctx context.Context) *failure {
	for _, next := range []stage{(*attempt).slot, (*attempt).compareDefinition, (*attempt).inForce, (*attempt).intend} {
		if fail := next(a, ctx); fail != nil {
			return fail
		}
	}
	return nil
}

// act takes the call through the acting stages, also when the run ends meanwhile.
func (a *attempt) act(ctx context.Context) *failure {
	for _, next := range acting() {
		if fail := next(a, ctx); fail != nil {
			return fail
		}
	}
	return nil
}

// cut is the failure of a call whose run ended under it.
func (a *attempt) cut(ctx context.Context) *failure {
	f := failf(errortype.Killed, "the run ended before the call was over").because(context.Cause(ctx))
	if cause := context.Cause(ctx); Ended(cause) != "" {
		return notInForce(cause)
	}
	f.refused = true
	return f
}

// answer tells the code what became of its call, and the log why.
func (a *attempt) answer(ctx context.Context, fail *failure) Answer {
	if fail == nil {
		return Answer{OK: true, Raw: a.result}
	}
	if fail.cause != nil {
		a.log(ctx, fail)
	}
	return a.answerError(fail)
}

// log says why a call failed. One that ended with its run is nothing to look after.
func (a *attempt) log(ctx context.Context, fail *failure) {
	attrs := []any{
		slog.String(telemetry.KeyRun, a.run.identity.ID), slog.String(telemetry.KeyCall, a.id),
		slog.String(telemetry.KeyServer, a.call.ServerID), slog.String(telemetry.KeyTool, a.call.Name),
		slog.String("error_type", fail.Type), slog.Any(telemetry.KeyError, fail.cause),
	}
	if fail.Type == errortype.Killed || errors.Is(fail.cause, context.Canceled) {
		a.broker.opts.Logger.InfoContext(ctx, "a call was cancelled", attrs...)
		return
	}
	a.broker.opts.Logger.WarnContext(ctx, "a call failed", attrs...)
}

func (a *attempt) answerError(fail *failure) Answer {
	e := fail.Error
	e.CallID = a.id
	if fail.Type == errortype.Tool && fail.Source == errortype.SourceTool {
		return Answer{Raw: a.result, Error: &e}
	}
	return Answer{Error: &e}
}
