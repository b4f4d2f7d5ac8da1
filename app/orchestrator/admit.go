package orchestrator

import (
	"context"
	"time"

	"github.com/airlock-mcp/airlock/broker"
)

// admit asks for permission to start the run. If it returns an outcome, the run is refused:
// nothing of it has happened, and no sandbox was used. A replay needs no permission.
func (o *Orchestrator) admit(ctx context.Context, p plan) (*broker.Admission, *Outcome) {
	if p.player != nil {
		return nil, nil
	}
	began := time.Now()
	admission, refused := o.parts.Broker.Admit(ctx, p.identity, p.limits.Timeout)
	if refused == nil {
		return admission, nil
	}
	admission.End(ctx, false, 0)
	result := Result{Error: &Failure{
		Type: refused.Type, Message: cut(refused.Message, maxMessage), Retryable: refused.Retryable,
		Source: refused.Source,
	}}
	result.Metrics.DurationMS = time.Since(began).Milliseconds()
	envelope := Envelope{
		RunID: p.identity.ID, TraceID: p.identity.TraceID, ToolName: p.toolName(), ToolVersion: p.version,
		InputDigest: p.identity.CodeHash, SandboxImage: p.imageName(), DurationMS: result.Metrics.DurationMS,
		ApprovalState: string(admission.Approval), Result: result,
	}
	seal(&envelope, result)
	return admission, &Outcome{Envelope: envelope, End: End{ExitCode: 1, Stopped: StoppedBySandbox}}
}
