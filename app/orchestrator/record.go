package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// record begins a record that is about this run.
func (r *run) record(kind audit.Kind) audit.Record {
	return audit.Record{
		Kind:     kind,
		Identity: r.identity.Recorded(),
		RunFacts: audit.RunFacts{
			Language: r.request.Language, Image: r.imageName(),
			Snapshot: r.snapshot.Digest(), InputDigest: r.identity.CodeHash,
		},
	}
}

// recordStart notes that code is about to run, which it does not before
// unrecorded has returned nil. The code by itself can do nothing outside its
// sandbox: each call's own intent is what has to be durable, and makes this
// record durable with it.
func (r *run) recordStart(ctx context.Context) {
	defer close(r.start.done)
	start := r.record(audit.KindRunStart)
	start.Limits, start.Host, start.Model = r.limitTable(), r.request.Caller.Host, r.request.Model
	if err := r.parts.Audit.Note(ctx, start); err != nil {
		r.parts.Logger.ErrorContext(ctx, "the start of a run could not be recorded",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
		r.start.err = &UnrecordedError{err}
	}
}

// An UnrecordedError refuses a run that the audit log cannot take: no code of it has run.
type UnrecordedError struct{ Err error }

// Error returns one sentence without the cause, which is logged.
func (e *UnrecordedError) Error() string {
	return "the audit log cannot be written, so no code is run"
}

// Unwrap returns the cause.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// Hint returns what to do.
func (e *UnrecordedError) Hint() string {
	return "tell the user: what keeps it from being written stands in Airlock's own log"
}

// limitTable lists the limits of the run by the configuration's keys, with
// values as the configuration would take them.
func (r *run) limitTable() map[string]string {
	table, l := r.parts.Broker.Limits().Table(), r.limits
	table["sandbox.cpus"] = strconv.FormatFloat(l.CPUs, 'g', -1, 64)
	table[r.timeoutKey()] = l.Timeout.String()
	for key, value := range map[string]int64{
		"sandbox.memory": l.Memory, "sandbox.pids": int64(l.PIDs), "sandbox.disk": l.Disk, "sandbox.inodes": l.Inodes,
		"sandbox.openFiles": int64(l.OpenFiles), "limits.stdout": l.Stdout, "limits.stderr": l.Stderr,
		"limits.output": l.Output,
	} {
		table[key] = strconv.FormatInt(value, 10)
	}
	return table
}

// timeoutKey is the configuration's key of the run's time limit.
func (p plan) timeoutKey() string {
	if p.request.Script != nil {
		return "script.timeout"
	}
	if p.request.Background {
		return "sandbox.backgroundTimeout"
	}
	return "sandbox.timeout"
}

// unrecorded waits until the start is recorded, and returns the error if that failed.
func (r *run) unrecorded() error {
	<-r.start.done
	return r.start.err
}

// recordEnd records the result of the run, and before it a violation of the socket's
// protocol, if any.
func (r *run) recordEnd(ctx context.Context, outcome *Outcome, ended ending) error {
	if ended.protocol != nil {
		violation := r.record(audit.KindViolation)
		violation.Detail = ended.protocol.Error()
		if err := r.parts.Audit.Note(ctx, violation); err != nil {
			return fmt.Errorf("recording a violation in %q: %w", r.identity.ID, err)
		}
	}
	end := r.record(audit.KindRunEnd)
	end.OutputDigest = outcome.Envelope.OutputDigest
	end.ApprovalState = outcome.Envelope.ApprovalState
	end.Calls = outcome.Envelope.Result.Metrics.Calls
	end.DurationMS = outcome.Envelope.DurationMS
	end.ResultSize = outcome.Envelope.Result.Metrics.BytesReturned
	end.Redactions = outcome.redactions
	end.Detail = r.attachedDetail()
	if outcome.open > 0 {
		end.Detail = strings.TrimPrefix(end.Detail+"; "+fmt.Sprintf("%d calls had not ended", outcome.open), "; ")
	}
	end.Outcome = audit.OutcomeOK
	if failure := outcome.Envelope.Result.Error; failure != nil {
		end.Outcome, end.ErrorType, end.ErrorSource = audit.OutcomeError, failure.Type, failure.Source
		end.Limit = r.limitHit(ended)
	}
	if err := r.parts.Audit.Note(ctx, end); err != nil {
		return fmt.Errorf("recording the end of %q: %w", r.identity.ID, err)
	}
	return nil
}
