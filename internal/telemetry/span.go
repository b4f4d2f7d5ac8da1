package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope names Airlock as the source of spans, metrics and log records.
const scope = "github.com/airlock-mcp/airlock"

// tracer creates spans for the provider that internal/telemetry/export sets. Without a
// provider, spans are discarded and cost almost nothing.
var tracer = otel.Tracer(scope)

// The names of spans within one process. Those of requests are their methods:
// "tools/call run_code".
const (
	SpanRun     = "airlock.run"             // one run, from its request to its envelope
	SpanAcquire = "airlock.sandbox.acquire" // waiting for a sandbox
	SpanExecute = "airlock.sandbox.execute" // the code in its sandbox
	SpanCall    = "airlock.call"            // one call of the code, all stages of the broker
	SpanApprove = "airlock.approval"        // a call that waits for a person
	SpanForward = "airlock.node.forward"    // a request that is forwarded to another node, until its answer begins
)

// The attribute keys that Airlock defines. Names of servers and tools come from the
// configuration and the catalog, never from the code of a run.
const (
	AttrRun      = attribute.Key("airlock.run.id")
	AttrCall     = attribute.Key("airlock.call.id")
	AttrServer   = attribute.Key("airlock.server.id")
	AttrLanguage = attribute.Key("airlock.language")
	AttrImage    = attribute.Key("airlock.image")
	AttrDecision = attribute.Key("airlock.decision")
	AttrAgentID  = attribute.Key("airlock.agent.id")
	AttrTokenID  = attribute.Key("airlock.token.id")
	AttrFile     = attribute.Key("airlock.file")
	AttrAccount  = attribute.Key("airlock.account")
	AttrLimit    = attribute.Key("airlock.limit")
	AttrAnswer   = attribute.Key("airlock.approval.answer")
	AttrError    = attribute.Key("error.type")
	AttrResource = attribute.Key("airlock.resource")
	AttrNode     = attribute.Key("airlock.node.name")
	AttrTool     = attribute.Key("gen_ai.tool.name")
)

// Span is a span of a trace, which has not ended yet.
type Span struct {
	span  trace.Span
	began time.Time
}

// Start begins a span within that of ctx. The caller ends it.
func Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, Span) {
	ctx, span := tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, Span{span, time.Now()}
}

// Set adds attributes.
func (s Span) Set(attributes ...attribute.KeyValue) { s.span.SetAttributes(attributes...) }

// End ends the span. errorType is the type of its error, or "".
func (s Span) End(errorType string) {
	if errorType != "" {
		s.span.SetAttributes(AttrError.String(errorType))
		s.span.SetStatus(codes.Error, "") // messages have words of servers and of code in them
	}
	s.span.End()
}

// EndTimed ends the span like End and adds its duration to a metric with these attributes.
func (s Span) EndTimed(ctx context.Context, m Duration, errorType string, attributes ...attribute.KeyValue) {
	s.End(errorType)
	m.Record(ctx, time.Since(s.began), errorType, attributes...)
}

// Duration is a metric of how long something takes, in seconds.
type Duration struct{ histogram metric.Float64Histogram }

// Record adds one duration. errorType is empty for what ended well.
func (d Duration) Record(ctx context.Context, took time.Duration, errorType string, attributes ...attribute.KeyValue) {
	if !d.histogram.Enabled(ctx) {
		return
	}
	if errorType != "" {
		attributes = append(attributes, AttrError.String(errorType))
	}
	d.histogram.Record(ctx, took.Seconds(), metric.WithAttributes(attributes...))
}

// TraceID returns the ID of the trace that ctx is part of, or a new one.
func TraceID(ctx context.Context) string {
	if in := trace.SpanContextFromContext(ctx); in.HasTraceID() {
		return in.TraceID().String()
	}
	return NewTraceID()
}
