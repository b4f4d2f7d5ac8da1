package telemetry

import "fmt"

// Got is what a collector was sent.
type Got struct {
	Raw      string          // all of it, as JSON
	Spans    map[string]Span // the last of each name
	Metrics  map[string]bool // by name
	Services map[string]bool // values of service.name
	Logs     []string        // the texts of records
}

// Chain checks that spans of these names are one below the other in a trace, the first
// of them below parent, and returns the identifier of the last.
func (g *Got) Chain(trace, parent string, names ...string) (last string, err error) {
	for _, name := range names {
		s, ok := g.Spans[name]
		if !ok || s.TraceID != trace || s.ParentSpanID != parent {
			return "", fmt.Errorf("%s: got trace %q below %q, want %s below %s", name, s.TraceID, s.ParentSpanID, trace,
				parent)
		}
		parent = s.SpanID
	}
	return parent, nil
}

// Span is one of a trace, as OTLP has it.
type Span struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string `json:"name"`
	Attributes   []Attribute
	Status       struct{ Code int }
}

// Attribute is one whose value is a text; others are empty.
type Attribute struct {
	Key   string
	Value struct{ StringValue string }
}

// Of returns the text of an attribute.
func (s Span) Of(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue
		}
	}
	return ""
}

type resource struct{ Attributes []Attribute }

// exported is a line of the collector's file: OTLP as JSON.
type exported struct {
	ResourceSpans []struct {
		Resource   resource
		ScopeSpans []struct{ Spans []Span }
	}
	ResourceMetrics []struct {
		Resource     resource
		ScopeMetrics []struct{ Metrics []struct{ Name string } }
	}
	ResourceLogs []struct {
		Resource  resource
		ScopeLogs []struct {
			LogRecords []struct{ Body struct{ StringValue string } }
		}
	}
}

func (g *Got) add(m exported) {
	from := func(r resource) { g.Services[Span{Attributes: r.Attributes}.Of("service.name")] = true }
	for _, r := range m.ResourceSpans {
		from(r.Resource)
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				g.Spans[s.Name] = s
			}
		}
	}
	for _, r := range m.ResourceMetrics {
		from(r.Resource)
		for _, scope := range r.ScopeMetrics {
			for _, metric := range scope.Metrics {
				g.Metrics[metric.Name] = true
			}
		}
	}
	for _, r := range m.ResourceLogs {
		from(r.Resource)
		for _, scope := range r.ScopeLogs {
			for _, record := range scope.LogRecords {
				g.Logs = append(g.Logs, record.Body.StringValue)
			}
		}
	}
}
