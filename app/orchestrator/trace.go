package orchestrator

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// knownLanguage returns the language of a request for traces: a known one, never the
// caller's text.
func (o *Orchestrator) knownLanguage(language string) attribute.KeyValue {
	if _, known := o.parts.Images[language]; known || language == LanguageCall {
		return telemetry.AttrLanguage.String(language)
	}
	return telemetry.AttrLanguage.String("other")
}

// errorTypeOf returns the type of a run's error: one of Airlock's types, or a single one for
// all types that programs raise.
func errorTypeOf(outcome *Outcome, err error) string {
	switch {
	case err != nil:
		return "refused"
	case outcome == nil || outcome.Envelope.Result.OK:
		return ""
	case outcome.Envelope.Result.Error == nil || outcome.Envelope.Result.Error.Source == errortype.SourceCode:
		return "exception"
	case !errortype.Known(outcome.Envelope.Result.Error.Type):
		return "exception"
	}
	return outcome.Envelope.Result.Error.Type
}

// acquire waits for the sandbox of a run.
func (o *Orchestrator) acquire(ctx context.Context, wanted runner.Request) (*runner.Sandbox, error) {
	image := telemetry.AttrImage.String(wanted.Image.Name)
	within, span := telemetry.Start(ctx, telemetry.SpanAcquire, image)
	sandbox, err := o.parts.Runner.Acquire(within, wanted)
	failed := ""
	if err != nil {
		failed = "refused"
	}
	span.EndTimed(ctx, telemetry.Acquire, failed, image)
	return sandbox, err
}
