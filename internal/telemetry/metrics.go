package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

var meter = otel.Meter(scope)

// The durations that are measured, in seconds.
var (
	// Requests and calls of MCP, as defined by its semantic conventions.
	ServerOperation = duration("mcp.server.operation.duration", "How long a request of a host took.", requestBounds)
	ClientOperation = duration("mcp.client.operation.duration", "How long a request to an upstream server took.", requestBounds)

	Run      = duration("airlock.run.duration", "How long a run took, from its request to its envelope.", requestBounds)
	Acquire  = duration("airlock.sandbox.acquire.duration", "How long a run waited for its sandbox.", requestBounds)
	Call     = duration("airlock.call.duration", "How long a call of code took, people and policies included.", requestBounds)
	Approval = duration("airlock.approval.duration", "How long a question waited for its answer.", peopleBounds)
	Append   = duration("airlock.audit.append.duration", "How long a durable record of the audit log took.", recordBounds)
)

var agentActions = counter("airlock.agent.actions", "{action}", "What agents announced, by decision.")

// CountAgentAction counts an action that an agent announced, by what was decided.
func CountAgentAction(ctx context.Context, decision string) {
	agentActions.Add(ctx, 1, metric.WithAttributes(AttrDecision.String(decision)))
}

var refusedRequests = counter("airlock.http.refused", "{request}", "Requests over HTTP that limits refused, by the limit.")

// CountRefusedRequest counts a request over HTTP that was refused, by the limit that did:
// one of a few words.
func CountRefusedRequest(ctx context.Context, limit string) {
	refusedRequests.Add(ctx, 1, metric.WithAttributes(AttrError.String(limit)))
}

var refusedTokens = counter("airlock.auth.refused", "{token}", "Tokens that callers over HTTP showed and that were refused, by the reason.")

// CountRefusedToken counts a token that was refused, by the reason: one of a few words.
func CountRefusedToken(ctx context.Context, reason string) {
	refusedTokens.Add(ctx, 1, metric.WithAttributes(AttrError.String(reason)))
}

// The bounds of histograms, in seconds.
var (
	requestBounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
	peopleBounds  = []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800}
	recordBounds  = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1}
)

func duration(name, description string, bounds []float64) Duration {
	h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
	if err != nil {
		panic("telemetry: " + err.Error()) // a name in this file is wrong
	}
	return Duration{h}
}

func counter(name, unit, description string) metric.Int64Counter {
	c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if err != nil {
		panic("telemetry: " + err.Error())
	}
	return c
}

// Level is a number that is looked up when metrics are read.
type Level struct {
	Name, Unit, Description string
	Read                    func() int64 // may be called at any time, also concurrently
}

// Watch has levels read until stop is called.
func Watch(levels ...Level) (stop func() error, _ error) {
	gauges := make([]metric.Int64ObservableGauge, len(levels))
	observables := make([]metric.Observable, len(levels))
	for i, l := range levels {
		g, err := meter.Int64ObservableGauge(l.Name, metric.WithUnit(l.Unit), metric.WithDescription(l.Description))
		if err != nil {
			return nil, err
		}
		gauges[i], observables[i] = g, g
	}
	registered, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i, l := range levels {
			o.ObserveInt64(gauges[i], l.Read())
		}
		return nil
	}, observables...)
	if err != nil {
		return nil, err
	}
	return registered.Unregister, nil
}
