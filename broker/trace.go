package broker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// traced carries the call within a span, and measures how long it took. Names are
// told where they are those of a tool: others are the code's own words.
func (a *attempt) traced(ctx context.Context) Answer {
	ctx, span := telemetry.Start(ctx, telemetry.SpanCall, telemetry.AttrCall.String(a.id))
	answer := a.carry(ctx)
	attributes := []attribute.KeyValue{telemetry.AttrDecision.String(a.decision())}
	if a.tool.Name != "" {
		attributes = append(attributes, telemetry.AttrServer.String(a.tool.ServerID), telemetry.AttrTool.String(a.tool.Name))
	}
	failed := ""
	if answer.Error != nil {
		failed = answer.Error.Type
	}
	span.Set(attributes...)
	span.EndTimed(ctx, telemetry.Call, failed, attributes...)
	return answer
}

// decision says what the rules said about the call.
func (a *attempt) decision() string {
	switch {
	case a.ruling.Allow:
		return "allow"
	case a.engine == nil:
		return "none" // it was refused before they were asked
	}
	return "deny"
}
