package audit

import (
	"strconv"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// The severity numbers of OpenTelemetry's log data model that are used.
const (
	otlpInfo = 9
	otlpWarn = 13
)

// The messages of opentelemetry/proto/logs/v1, in their JSON encoding.
type (
	otlpLogs struct {
		ResourceLogs []otlpResourceLogs `json:"resourceLogs"`
	}
	otlpResourceLogs struct {
		Resource  otlpResource    `json:"resource"`
		ScopeLogs []otlpScopeLogs `json:"scopeLogs"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeLogs struct {
		Scope      otlpScope    `json:"scope"`
		LogRecords []otlpRecord `json:"logRecords"`
	}
	otlpScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	otlpRecord struct {
		TimeUnixNano   string          `json:"timeUnixNano"`
		SeverityNumber int             `json:"severityNumber"`
		SeverityText   string          `json:"severityText"`
		EventName      string          `json:"eventName"`
		Body           otlpValue       `json:"body"`
		Attributes     []otlpAttribute `json:"attributes"`
		TraceID        string          `json:"traceId,omitempty"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string `json:"stringValue,omitempty"`
		Int    *string `json:"intValue,omitempty"` // 64-bit integers are texts in this encoding
	}
)

func otlpText(s string) otlpValue { return otlpValue{String: &s} }

// toOTLP maps a record to one export request with one log record: every member
// becomes the attribute airlock.<name>.
func toOTLP(r Record, o ExportOptions) (any, error) {
	at, err := when(r)
	if err != nil {
		return nil, err
	}
	attributes, err := otlpAttributes(r)
	if err != nil {
		return nil, err
	}
	record := otlpRecord{
		TimeUnixNano: strconv.FormatInt(at.UnixNano(), 10), SeverityNumber: otlpInfo, SeverityText: "INFO",
		EventName: "airlock." + string(r.Kind), Body: otlpText(operation(r)), Attributes: attributes,
		TraceID: r.TraceID,
	}
	if ocsfSeverity(r) > ocsfInformation {
		record.SeverityNumber, record.SeverityText = otlpWarn, "WARN"
	}
	return otlpLogs{[]otlpResourceLogs{{
		Resource: otlpResource{[]otlpAttribute{{"service.name", otlpText("airlock")},
			{"service.version", otlpText(o.Version)}}},
		ScopeLogs: []otlpScopeLogs{{
			Scope: otlpScope{"airlock/audit", o.Version}, LogRecords: []otlpRecord{record},
		}},
	}}}, nil
}

func otlpAttributes(r Record) ([]otlpAttribute, error) {
	names, values, err := members(r)
	if err != nil {
		return nil, err
	}
	attributes := make([]otlpAttribute, 0, len(names))
	for _, name := range names {
		value, raw := otlpValue{}, values[name]
		var text string
		var number int64
		switch {
		case strictjson.UnmarshalOpen(raw, &text) == nil:
			value = otlpText(text)
		case strictjson.UnmarshalOpen(raw, &number) == nil:
			digits := strconv.FormatInt(number, 10)
			value.Int = &digits
		default:
			value = otlpText(string(raw))
		}
		attributes = append(attributes, otlpAttribute{"airlock." + name, value})
	}
	return attributes, nil
}
