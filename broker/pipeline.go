package broker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
)

// attempt is one call while it is carried out. Each stage adds its results.
type attempt struct {
	run      *RunCalls
	broker   *Broker
	call     Call
	id       string // call_…
	number   int    // of the run's calls, from 1
	began    time.Time
	reserved *reserved // slot, keepUnread: the part of the run's limits that it uses
	work     int64     // reserveWork: bytes of arguments

	found
	parsed
	ruled
	asked
	answered
	kept
}

// found holds the results of find.
type found struct {
	tool     catalog.Tool
	rules    *admission.Rules // the rules when the call arrived
	settings policies.Settings
}

// parsed holds the results of validate.
type parsed struct {
	arguments json.RawMessage // the bytes that are sent
	input     map[string]any  // the same, decoded
	hash      string          // keyed, over arguments
}

// ruled holds the results of count and decide.
type ruled struct {
	before  policies.Session // the session's facts before this call
	usage   admission.Usage
	decided bool // the rules were evaluated
	ruling  policies.Decision
	grant   *admission.Grant // nil unless the call is permitted
}

// asked holds the results of approve.
type asked struct {
	approval approval.State
	verdict  approval.Verdict
}

// answered holds the results of the acting stages.
type answered struct {
	result  json.RawMessage  // callServer, then validated and redacted
	taskID  string           // callServer: of the task that the server made
	isError bool             // validateOutput: the tool reports a failure
	removed []redact.Finding // redact
	held    int              // redact: number of credentials searched for
	traffic audit.Traffic    // of a connection
	note    string           // validateOutput: for the record
}

// stage is one step of a call. A failure ends the call.
type stage func(*attempt, context.Context) *failure

// The run is already identified by the session on which the call arrived. These stages can then
// refuse the call, in this order. None of them acts.
func deciding() []stage {
	return []stage{(*attempt).find, (*attempt).reserveWork, (*attempt).validate, (*attempt).count, (*attempt).decide,
		(*attempt).approve}
}

// The last stages make the call and check the result.
func acting() []stage {
	return []stage{(*attempt).mayAct, (*attempt).callServer, (*attempt).validateOutput, (*attempt).redact,
		(*attempt).keepLarge, (*attempt).keepUnread, (*attempt).receive, (*attempt).toolFailure}
}

// carry passes a call through all stages. Between deciding and acting it records the intent
// durably. If that fails, nothing happens.
func (a *attempt) carry(ctx context.Context) Answer {
	fail := a.admit(ctx)
	if fail != nil {
		fail.refused = true
	} else if fail = a.ready(ctx); fail == nil {
		fail = a.act(ctx)
	}
	a.run.tally(fail == nil || !fail.refused)
	if fail != nil { // some messages contain text of servers
		message, found := a.run.opts.Redactor.Held([]byte(fail.Message))
		fail.Message, a.removed = string(message), append(a.removed, found...)
	}
	a.endGrant(ctx, fail == nil || !fail.refused)
	if unrecorded := a.conclude(ctx, fail); unrecorded != nil {
		fail = unrecorded
	}
	return a.answer(ctx, fail)
}

// admit passes the call through the deciding stages while the run is open.
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

// ready takes the call from its decision to its intent: it gets a slot, checks that the definition
// has not changed, records the server as read, checks that the caller's credential is still valid,
// and writes the record.
func (a *attempt) ready(ctx context.Context) *failure {
	for _, next := range []stage{(*attempt).slot, (*attempt).compareDefinition, (*attempt).markRead,
		(*attempt).inForce, (*attempt).intend} {
		if fail := next(a, ctx); fail != nil {
			return fail
		}
	}
	return nil
}

// act passes the call through the acting stages, even if the run ends in the meantime.
func (a *attempt) act(ctx context.Context) *failure {
	for _, next := range acting() {
		if fail := next(a, ctx); fail != nil {
			return fail
		}
	}
	return nil
}

// cut returns the failure of a call whose run has ended.
func (a *attempt) cut(ctx context.Context) *failure {
	f := failf(errortype.Killed, "the run ended before the call was over").because(context.Cause(ctx))
	if cause := context.Cause(ctx); Ended(cause) != "" {
		return notInForce(cause)
	}
	f.refused = true
	return f
}

// answer returns the answer for the code and logs the cause.
func (a *attempt) answer(ctx context.Context, fail *failure) Answer {
	if fail == nil && a.file != "" {
		return a.keptAnswer()
	}
	if fail == nil {
		return Answer{OK: true, Raw: a.result}
	}
	if fail.cause != nil {
		a.log(ctx, fail)
	}
	return a.answerError(fail)
}

// log logs the cause of a failure. A call that ended with its run is not logged.
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
	if fail.Type == errortype.Tool && fail.Source == errortype.SourceTool && !a.isLarge() {
		return Answer{Raw: a.result, Error: &e}
	}
	return Answer{Error: &e}
}
