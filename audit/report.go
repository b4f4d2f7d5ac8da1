package audit

import (
	"bytes"
	"errors"
	"slices"
)

// ReportOptions select the rows of a report. The zero value selects all.
type ReportOptions struct {
	Period
	Principal string // an act in this principal's name
	Server    string
	Tool      string
	CallID    string
}

// Row is one act in a report: who sent what where, on whose behalf, who permitted it, and its
// outcome. Values of arguments are not part of it.
type Row struct {
	Seq        uint64 `json:"seq"` // of the record that ended the act
	Time       string `json:"time"`
	Principal  string `json:"principal"` // on whose behalf
	Issuer     string `json:"issuer,omitempty"`
	CallerKind string `json:"caller_kind,omitempty"`
	Host       string `json:"host,omitempty"` // the agent host's own claim
	Model      string `json:"model,omitempty"`
	RunID      string `json:"run_id,omitempty"`
	CallID     string `json:"call_id,omitempty"`
	Server     string `json:"server,omitempty"`
	What       string `json:"what"` // the tool, or the kind of record
	Arguments  string `json:"arguments,omitempty"`
	Decision   string `json:"decision,omitempty"`
	Policies   string `json:"policies,omitempty"`
	Approval   string `json:"approval,omitempty"`
	Approver   string `json:"approver,omitempty"`
	Outcome    string `json:"outcome"`
	ErrorType  string `json:"error_type,omitempty"`
}

// column is one column of a report.
type column struct {
	name  string
	of    func(Row) string
	table bool // a table on a terminal has it
}

// columns are the columns of a report, in the order in which its question asks for them.
func columns() []column {
	return []column{
		{"time", func(r Row) string { return r.Time }, true},
		{"on behalf of", func(r Row) string { return r.Principal }, true},
		{"issuer", func(r Row) string { return r.Issuer }, false},
		{"caller", func(r Row) string { return r.CallerKind }, false},
		{"host", func(r Row) string { return r.Host }, true},
		{"model", func(r Row) string { return r.Model }, false},
		{"server", func(r Row) string { return r.Server }, true},
		{"what", func(r Row) string { return r.What }, true},
		{"arguments", func(r Row) string { return r.Arguments }, false},
		{"decision", func(r Row) string { return r.Decision }, true},
		{"rules", func(r Row) string { return r.Policies }, false},
		{"approval", func(r Row) string { return r.Approval }, false},
		{"approved by", func(r Row) string { return r.Approver }, true},
		{"outcome", func(r Row) string { return r.Outcome }, true},
		{"error", func(r Row) string { return r.ErrorType }, false},
		{"run", func(r Row) string { return r.RunID }, true},
		{"call", func(r Row) string { return r.CallID }, false},
		{"record", func(r Row) string { return decimal(r.Seq) }, false},
	}
}

// ErrEnough ends a report early, without an error, if visit returns it.
var ErrEnough = errors.New("enough")

// reader finds the acts in records. It remembers what is under way, so its memory does not grow with
// the log.
type reader struct {
	opts    ReportOptions
	runs    map[string]Record // run_start records of runs that have not ended
	intents map[string]Record // of calls that have not ended
	visit   func(record, start Record) error
}

// EachRow calls visit for each act of the log that matches, in the order in which they ended; acts
// that have not ended are last. Each record is proven on the way.
func EachRow(dir string, opts ReportOptions, visit func(Row) error) error {
	return eachAct(dir, opts, func(record, start Record) error { return visit(rowOf(record, start)) })
}

// eachAct calls visit for each act that matches, with the records of its end and of the start of its run.
func eachAct(dir string, opts ReportOptions, visit func(record, start Record) error) error {
	r := &reader{opts, map[string]Record{}, map[string]Record{}, visit}
	first, err := FirstSince(dir, opts.Period)
	if err == nil {
		err = each(dir, first, opts.CallID, r.read) // the lines of a call have its ID
	}
	if err == nil {
		err = r.rest()
	}
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

func (r *reader) read(record Record) error {
	switch record.Kind {
	case KindRunStart:
		r.runs[record.RunID] = record
	case KindRunEnd:
		delete(r.runs, record.RunID)
	case KindIntent:
		r.intents[record.CallID] = record
	case KindOutcome:
		intent := r.intents[record.CallID]
		delete(r.intents, record.CallID)
		if len(record.Arguments) == 0 {
			record.Arguments = intent.Arguments
		}
		if record.Decision == "" { // it was closed after its Airlock had been killed
			record.Ruling = intent.Ruling
		}
		return r.act(record)
	case KindAction, KindKernel, KindDecision, KindOperator:
		return r.act(record)
	}
	return nil
}

// rest visits the calls that have not ended.
func (r *reader) rest() error {
	open := make([]Record, 0, len(r.intents))
	for _, intent := range r.intents {
		intent.Outcome = "under way"
		open = append(open, intent)
	}
	slices.SortFunc(open, func(a, b Record) int { return int(a.Seq) - int(b.Seq) })
	for _, intent := range open {
		if err := r.act(intent); err != nil {
			return err
		}
	}
	return nil
}

// act visits a record if it matches.
func (r *reader) act(record Record) error {
	o := r.opts
	if !o.Has(record) || o.Principal != "" && o.Principal != record.Principal ||
		o.Server != "" && o.Server != record.ServerID || o.Tool != "" && o.Tool != record.ToolName ||
		o.CallID != "" && o.CallID != record.CallID {
		return nil
	}
	return r.visit(record, r.runs[record.RunID])
}

func rowOf(record, start Record) Row {
	what := operation(record)
	if record.Kind == KindOperator || record.ToolName == "" && record.Detail != "" {
		what = string(record.Kind) + ": " + record.Detail
	}
	return Row{
		Seq: record.Seq, Time: record.Time, Principal: record.Principal, Issuer: record.Issuer,
		CallerKind: record.CallerKind, Host: start.Host, Model: start.Model, RunID: record.RunID,
		CallID: record.CallID, Server: record.ServerID, What: what,
		Arguments: string(bytes.TrimSpace(record.Arguments)),
		Decision:  record.Decided(), Policies: joined(record.Policies), Approval: record.Approval,
		Approver: record.Approver, Outcome: record.Outcome, ErrorType: record.ErrorType,
	}
}
