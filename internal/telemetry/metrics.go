package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

var meter = otel.Meter(scope)

// The durations that are measured, in seconds.
var (
	// Requests and calls of MCP, as defined by its semantic conventions.
	ServerOperation = duration("mcp.server.operation.duration", "How long a request of a host took.", requestBounds)
	ClientOperation = duration("mcp.client.operation.duration", "How long a request to an upstream server took.",
		requestBounds)

	Run     = duration("airlock.run.duration", "How long a run took, from its request to its envelope.", requestBounds)
	Acquire = duration("airlock.sandbox.acquire.duration", "How long a run waited for its sandbox.", requestBounds)
	Call    = duration("airlock.call.duration", "How long a call of code took, people and policies included.",
		requestBounds)
	Approval  = duration("airlock.approval.duration", "How long a question waited for its answer.", peopleBounds)
	Published = duration("airlock.tools.publish.duration",
		"How long it took from a change of a server's tools to published wrappers.", peopleBounds)
	Append = duration("airlock.audit.append.duration", "How long a durable record of the audit log took.",
		recordBounds)
	Forward = duration("airlock.node.forward.duration",
		"How long another node of the cluster took until it began to answer a forwarded request.", requestBounds)
)

var (
	agentActions = counter("airlock.agent.actions", "{action}", "Decisions about actions of agents.")
	agentCost    = costs("airlock.agent.cost", "USD", "What agents were debited, less what was refunded.")
)

// CountAgentAction counts a decision about an action of an agent, and what it was debited in US
// dollars. A negative amount is a refund. An empty decision counts the amount only.
func CountAgentAction(ctx context.Context, agent, decision string, dollars float64) {
	if decision != "" {
		agentActions.Add(ctx, 1, metric.WithAttributes(AttrAgentID.String(agent), AttrDecision.String(decision)))
	}
	if dollars != 0 {
		agentCost.Add(ctx, dollars, metric.WithAttributes(AttrAgentID.String(agent)))
	}
}

var refusals = counter("airlock.quota.refused", "{request}",
	"Requests that a limit refused, by the resource and by whose limit was reached.")

// CountRefusal counts a request that a limit refused, with one of a few words for each attribute.
func CountRefusal(ctx context.Context, resource, reason string) {
	refusals.Add(ctx, 1, metric.WithAttributes(AttrResource.String(resource), AttrError.String(reason)))
}

var serverStarts = counter("airlock.server.starts", "{start}",
	"Attempts to start a server's program, or to begin a session with a server.")

// CountServerStart counts an attempt to connect to an upstream server.
func CountServerStart(ctx context.Context, server string, failed bool) {
	attributes := []attribute.KeyValue{AttrServer.String(server)}
	if failed {
		attributes = append(attributes, AttrError.String("failed"))
	}
	serverStarts.Add(ctx, 1, metric.WithAttributes(attributes...))
}

var refusedTokens = counter("airlock.auth.refused", "{token}",
	"Tokens that callers over HTTP showed and that were refused, by the reason.")

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
	h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(bounds...))
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

func costs(name, unit, description string) metric.Float64UpDownCounter {
	c, err := meter.Float64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if err != nil {
		panic("telemetry: " + err.Error())
	}
	return c
}

// Use is the used part of a limit of an account: 1 is all of it.
type Use struct {
	Account, Limit string
	Part           float64
}

// WatchBudgets has the uses of budgets read until stop is called. read may be called at any time,
// also concurrently.
func WatchBudgets(read func(context.Context) ([]Use, error)) (stop func() error, _ error) {
	gauge, err := meter.Float64ObservableGauge("airlock.budget.used", metric.WithUnit("1"),
		metric.WithDescription("Used parts of the limits of agents and principals."))
	if err != nil {
		return nil, err
	}
	registered, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		uses, err := read(ctx)
		for _, u := range uses {
			o.ObserveFloat64(gauge, u.Part,
				metric.WithAttributes(AttrAccount.String(u.Account), AttrLimit.String(u.Limit)))
		}
		return err
	}, gauge)
	if err != nil {
		return nil, err
	}
	return registered.Unregister, nil
}

// Series is a number for each of several names, looked up when metrics are read.
type Series struct {
	Name, Unit, Description string
	Attribute               attribute.Key // of the names
	// Read may be called at any time, also concurrently.
	Read func(context.Context) (map[string]int64, error)
}

// WatchSeries has series read until stop is called.
func WatchSeries(series ...Series) (stop func() error, _ error) {
	gauges := make([]metric.Int64ObservableGauge, len(series))
	observables := make([]metric.Observable, len(series))
	for i, s := range series {
		g, err := meter.Int64ObservableGauge(s.Name, metric.WithUnit(s.Unit), metric.WithDescription(s.Description))
		if err != nil {
			return nil, err
		}
		gauges[i], observables[i] = g, g
	}
	registered, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		var errs []error
		for i, s := range series {
			values, err := s.Read(ctx)
			errs = append(errs, err)
			for name, value := range values {
				o.ObserveInt64(gauges[i], value, metric.WithAttributes(s.Attribute.String(name)))
			}
		}
		return errors.Join(errs...)
	}, observables...)
	if err != nil {
		return nil, err
	}
	return registered.Unregister, nil
}

// WatchTokens has the ends of tokens read until stop is called, by their IDs, in seconds since 1970.
func WatchTokens(read func(context.Context) (map[string]int64, error)) (stop func() error, _ error) {
	return WatchSeries(Series{Name: "airlock.token.expires", Unit: "s", Attribute: AttrTokenID, Read: read,
		Description: "When the valid tokens that Airlock issued expire."})
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
