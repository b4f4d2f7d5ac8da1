package broker

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/redact"
)

// maxRecordedName is the maximum recorded length, in bytes, of a name chosen by the code.
const maxRecordedName = 256

// intend records durably that the call is about to happen.
func (a *attempt) intend(ctx context.Context) *failure {
	r := a.record(audit.KindIntent)
	r.Arguments, r.Values = a.broker.recorder.Arguments(a.run.opts.Redactor.Names(a.input)), a.arguments
	if err := a.broker.recorder.Append(ctx, r); err != nil {
		if ctx.Err() != nil {
			return a.cut(ctx)
		}
		return unrecorded(err)
	}
	return nil
}

// unrecorded returns the failure of an act whose intent could not be recorded.
func unrecorded(err error) *failure {
	f := failf(errortype.Sandbox,
		"the call was not made, because it could not be recorded; nothing works until an operator has looked").because(
		err)
	f.refused = true
	return f
}

// conclude records the outcome of the call, even if its run has ended. If it cannot be recorded,
// the returned failure replaces the answer.
func (a *attempt) conclude(ctx context.Context, fail *failure) *failure {
	r := a.record(audit.KindOutcome)
	r.DurationMS = a.broker.opts.Now().Sub(a.began).Milliseconds()
	r.Redactions = redact.Counts(a.removed)
	if a.result != nil {
		r.ResultSize, r.ResultHash = int64(len(a.result)), a.broker.recorder.Hash(a.result)
	}
	r.Traffic, r.Outcome, r.Detail = a.traffic, audit.OutcomeOK, a.note
	if a.file != "" {
		r.Detail = "kept as " + a.file
	}
	if fail != nil {
		r.Outcome, r.ErrorType, r.Limit, r.Detail = audit.OutcomeError, fail.Type, fail.limit, fail.detail
		if fail.refused {
			r.Outcome = audit.OutcomeRefused
		}
		if fail.refused && r.Decision != "" { // it has no intent record that names the refused act
			r.Arguments, r.Values = a.broker.recorder.Arguments(a.run.opts.Redactor.Names(a.input)), a.arguments
		}
	}
	often := r.Outcome == audit.OutcomeRefused && !a.broker.admission.CountRefusal(a.run.identity.Caller.Account())
	if often && a.counted(r) {
		return nil
	}
	var err error
	if r.Outcome == audit.OutcomeRefused {
		err = a.broker.recorder.Note(ctx, r)
	} else { // its intent is in the log, and the end of its run comes after it
		err = a.broker.recorder.NoteSoon(r)
	}
	if often {
		a.awaitTurn(ctx)
	}
	if err == nil {
		return nil
	}
	a.broker.opts.Logger.ErrorContext(ctx, "the outcome of a call could not be recorded",
		slog.String(telemetry.KeyRun, a.run.identity.ID), slog.String(telemetry.KeyCall, a.id),
		slog.Any(telemetry.KeyError, err))
	if fail != nil {
		return nil
	}
	return failf(errortype.Sandbox,
		"the call was made, but its outcome could not be recorded, so it is withheld; nothing works until an "+
			"operator has looked")
}

// recordQuestion records that a person is being asked.
func (a *attempt) recordQuestion(ctx context.Context, q approval.Question) error {
	r := a.record(audit.KindApproval)
	r.Detail = fmt.Sprintf("%s asked, until %s", q.ID, q.Expires.UTC().Format("2006-01-02T15:04:05Z"))
	return a.broker.recorder.Append(ctx, r)
}

// recordVerdict records the end of a question. A failure is only logged, because the later intent
// or outcome contains the same information.
func (a *attempt) recordVerdict(ctx context.Context, q approval.Question, asking error) {
	r := a.record(audit.KindApproval)
	r.Detail = q.ID + " " + a.verdict.Answer.String()
	switch {
	case ctx.Err() != nil:
		r.Detail = q.ID + " withdrawn, because the run ended"
	case asking != nil:
		r.Detail = q.ID + " could not be asked"
	case a.verdict.For.Reach != approval.ThisCall:
		r.Detail += ", and for this tool's further calls " + a.verdict.For.Describe()
	case a.verdict.Reason != "":
		r.Detail += ": " + a.verdict.Reason
	}
	if err := a.broker.recorder.Note(ctx, r); err != nil {
		a.broker.opts.Logger.ErrorContext(ctx, "the end of a question could not be recorded",
			slog.String(telemetry.KeyCall, a.id), slog.Any(telemetry.KeyError, err))
	}
}

// record returns a record with everything known about the call so far.
func (a *attempt) record(kind audit.Kind) audit.Record {
	run := a.run.identity
	r := audit.Record{
		Kind:     kind,
		Identity: run.Recorded(),
		Act: audit.Act{
			CallID: a.id, ParentID: run.ID, ServerID: a.recordedName(a.call.ServerID),
			ToolName:         a.recordedName(a.call.Name),
			DefinitionDigest: a.tool.Digest, ArgumentsHash: a.hash, Delegation: run.delegated,
			TaskID: a.taskID,
		},
	}
	if !a.decided {
		return r // it was refused before the rules were evaluated
	}
	r.Ruling = audit.Ruling{
		Decision: "deny", Policies: a.ruling.Policies(), PolicyVersion: a.rules.Policies.Version(),
		Risk:     a.ruling.Risk.String(),
		Approval: string(a.approval), Approver: a.verdict.By,
	}
	if a.ruling.Allow {
		r.Decision = "allow"
	}
	return r
}

// recordedName limits the length of a name chosen by the code, and redacts it unless it is the name
// of a tool or a prompt. A URI can contain credentials.
func (a *attempt) recordedName(name string) string {
	if a.tool.Name == "" || a.tool.Kind == catalog.KindResource {
		name = a.run.opts.Redactor.Text(name)
	}
	return truncate.Bytes(name, maxRecordedName)
}
