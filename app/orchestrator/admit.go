package orchestrator

import (
	"context"
	"time"

	"github.com/airlock-mcp/airlock/broker"
)

// admit has it decided whether the run may begin. An outcome says that it must
// not, and why: nothing of it has happened then, and no sandbox was taken for it.
// A replay does nothing that could be decided about.
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
		Type: refused.Type, Message: cut(refused.Message, maxMessage), Retryable: refused.Retryable, Source: refused.Source,
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
