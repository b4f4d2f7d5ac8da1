package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request is a request of MCP, as traces and metrics name it (OpenTelemetry's
// semantic conventions for the Model Context Protocol, in development).
type Request struct {
	Method    string
	Tool      string // a tool that exists; empty: the request is about none
	Transport string // "pipe" for stdio, "tcp" for HTTP
	Session   string // an ID of the session that grants no access; may be empty
	Server    string // the upstream server; empty for requests from a host
}

// name is that of the request's span.
func (r Request) name() string {
	if r.Tool == "" {
		return r.Method
	}
	return r.Method + " " + r.Tool
}

// attributes are those of span and metric alike: of few values each.
func (r Request) attributes() []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("mcp.method.name", r.Method),
		attribute.String("network.transport", r.Transport)}
	if r.Tool != "" {
		list = append(list, AttrTool.String(r.Tool), attribute.String("gen_ai.operation.name", "execute_tool"))
	}
	if r.Server != "" {
		list = append(list, AttrServer.String(r.Server))
	}
	return list
}

// Receive begins the span of a request of a host, within the span that the first of
// the carriers with a trace names (W3C Trace Context). The caller calls end.
func Receive(ctx context.Context, r Request, carriers ...Carrier) (_ context.Context, end func(errorType string)) {
	for _, carrier := range carriers {
		if within := Within(ctx, carrier); trace.SpanContextFromContext(within).IsRemote() {
			ctx = within
			break
		}
	}
	return r.begin(ctx, trace.SpanKindServer, ServerOperation)
}

// Within returns ctx within the span that a carrier names, if it names one.
func Within(ctx context.Context, carrier Carrier) context.Context { return w3c.Extract(ctx, carrier) }

// Send begins the span of a request to an upstream server. The caller calls end.
func Send(ctx context.Context, r Request) (_ context.Context, end func(errorType string)) {
	return r.begin(ctx, trace.SpanKindClient, ClientOperation)
}

func (r Request) begin(ctx context.Context, kind trace.SpanKind, m Duration) (context.Context, func(string)) {
	attributes := r.attributes()
	ctx, s := tracer.Start(ctx, r.name(), trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	span := Span{s, time.Now()}
	if r.Session != "" {
		span.Set(attribute.String("mcp.session.id", r.Session))
	}
	return ctx, func(errorType string) { span.EndTimed(ctx, m, errorType, attributes...) }
}

// w3c reads and writes traceparent and tracestate. Baggage is neither read nor
// written: it is data of other people.
var w3c = propagation.TraceContext{}

// Carrier returns the value of a key that came with a request, or "".
type Carrier func(key string) string

// Get looks up a key.
func (c Carrier) Get(key string) string {
	const most = 1 << 10 // tracestate has at most 512 characters that must be passed on
	if value := c(key); len(value) <= most {
		return value
	}
	return ""
}

// Set is for the other direction.
func (c Carrier) Set(string, string) {}

// Keys is for carriers that are listed.
func (c Carrier) Keys() []string { return w3c.Fields() }

// Pass calls set for each key that carries the trace context to a server (SEP-414: traceparent and tracestate, in
// _meta) or to another node (the headers of these names). It also does so if this process exports nothing and the host
// has sent its trace context.
func Pass(ctx context.Context, set func(key, value string)) {
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	for key, value := range carrier {
		set(key, value)
	}
}
