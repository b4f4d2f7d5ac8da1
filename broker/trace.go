package broker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// traced carries out the call within a span and measures its duration. Names are only exported if
// they are those of a tool, because the code can choose others freely.
func (a *attempt) traced(ctx context.Context) Answer {
	ctx, span := telemetry.Start(ctx, telemetry.SpanCall, telemetry.AttrCall.String(a.id))
	answer := a.carry(ctx)
	attributes := []attribute.KeyValue{telemetry.AttrDecision.String(a.decision())}
	if a.tool.Name != "" {
		attributes = append(attributes, telemetry.AttrServer.String(a.tool.ServerID),
			telemetry.AttrTool.String(a.tool.Name))
	}
	failed := ""
	if answer.Error != nil {
		failed = answer.Error.Type
	}
	span.Set(attributes...)
	span.EndTimed(ctx, telemetry.Call, failed, attributes...)
	return answer
}

// decision returns the decision of the rules about the call.
func (a *attempt) decision() string {
	switch {
	case a.ruling.Allow:
		return "allow"
	case !a.decided:
		return "none" // it was refused before the rules were evaluated
	}
	return "deny"
}
