package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Format is a form in which a log is exported, one JSON object a line.
type Format string

// The formats.
const (
	FormatJSONL Format = "jsonl" // the records as they are
	FormatOCSF  Format = "ocsf"  // Open Cybersecurity Schema Framework 1.5, API Activity (6003)
	FormatOTLP  Format = "otlp"  // OpenTelemetry protocol 1.7, logs in JSON encoding
)

// Formats lists all formats.
func Formats() []Format { return []Format{FormatJSONL, FormatOCSF, FormatOTLP} }

// ExportOptions select the exported records. The zero value exports everything.
type ExportOptions struct {
	From    uint64 // number of the first record
	Period         // only records written in it
	RunID   string // only this run's records; empty: all
	Version string // Airlock's own
}

// Export writes the log in the given format. It proves each record on the way,
// and ends with an error at the first that is not as it was written.
func Export(w io.Writer, dir string, format Format, opts *ExportOptions) error {
	o := ExportOptions{}
	if opts != nil {
		o = *opts
	}
	if _, ok := encoders()[format]; !ok {
		return fmt.Errorf("exporting the audit log: there is no format %q", format)
	}
	from, err := o.first(dir)
	if err != nil {
		return err
	}
	return each(dir, from, o.RunID, func(r Record) error {
		line, err := o.line(r, format)
		if err != nil || line == nil {
			return err
		}
		_, err = w.Write(line)
		return err
	})
}

// first returns the number of a record before which none is exported.
func (o ExportOptions) first(dir string) (uint64, error) {
	first, err := FirstSince(dir, o.Period)
	return max(first, o.From), err
}

// line returns the line of a record, or nil if the record is not selected.
func (o ExportOptions) line(r Record, format Format) ([]byte, error) {
	if r.Seq < o.From || o.RunID != "" && r.RunID != o.RunID || !o.Has(r) {
		return nil, nil
	}
	line, err := encoders()[format](r, o)
	if err != nil {
		return nil, fmt.Errorf("exporting record %d: %w", r.Seq, err)
	}
	return line, nil
}

// encoder turns a record into a line.
type encoder func(Record, ExportOptions) ([]byte, error)

func encoders() map[Format]encoder {
	return map[Format]encoder{
		// the very line: its hash can be checked
		FormatJSONL: func(r Record, _ ExportOptions) ([]byte, error) { return seal(nil, &r) },
		FormatOCSF:  func(r Record, o ExportOptions) ([]byte, error) { return line(toOCSF(r, o)) },
		FormatOTLP:  func(r Record, o ExportOptions) ([]byte, error) { return line(toOTLP(r, o)) },
	}
}

func line(v any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	text, err := canon.Verbatim(v)
	return append(text, '\n'), err
}

// when reads a record's time.
func when(r Record) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, r.Time)
	if err != nil {
		return t, fmt.Errorf("its time %q is not a time of RFC 3339", r.Time)
	}
	return t, nil
}

// operation names what a record is about: a tool, or what Airlock itself did.
func operation(r Record) string {
	if r.ToolName != "" {
		return r.ToolName
	}
	return "airlock." + string(r.Kind)
}

// members returns a record's members and their JSON values, by name.
func members(r Record) (names []string, values map[string]json.RawMessage, err error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, nil, err
	}
	if err := strictjson.UnmarshalOpen(text, &values); err != nil {
		return nil, nil, err
	}
	return slices.Sorted(maps.Keys(values)), values, nil
}
