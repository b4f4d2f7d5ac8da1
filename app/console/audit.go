package console

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/audit"
)

// auditSection shows the audit log with the records of all callers.
func auditSection() section {
	return section{name: "Audit", path: "/audit", scope: auth.ScopeAudit, template: "audit", pages: []page{
		{pattern: "GET /audit", scope: auth.ScopeAudit, show: showAudit},
		{pattern: "GET /audit/export", scope: auth.ScopeAudit, show: exportAudit},
		// This changes nothing. It is not a GET because it reads the whole log.
		{pattern: "POST /audit/verify", scope: auth.ScopeAudit, show: verifyAudit},
	}}
}

// Limits of one page of the log.
const (
	auditPage  = 50
	auditBytes = 64 << 20 // of the log are read for it
)

// auditFilter selects the records that match all of its non-empty fields.
type auditFilter struct {
	Kind, Outcome, Server, Tool, Run, Principal string
	Before                                      uint64 // a number; 0: from the newest on
	periodFilter
}

// filterFields are the fields of the form and the corresponding members of a record.
var filterFields = []struct {
	name, member string
	in           func(*auditFilter) *string
	of           func(audit.Record) string
}{
	{"kind", "kind", func(f *auditFilter) *string { return &f.Kind },
		func(r audit.Record) string { return string(r.Kind) }},
	{"outcome", "outcome", func(f *auditFilter) *string { return &f.Outcome },
		func(r audit.Record) string { return r.Outcome }},
	{"server", "server_id", func(f *auditFilter) *string { return &f.Server },
		func(r audit.Record) string { return r.ServerID }},
	{"tool", "tool_name", func(f *auditFilter) *string { return &f.Tool },
		func(r audit.Record) string { return r.ToolName }},
	{"run", "run_id", func(f *auditFilter) *string { return &f.Run },
		func(r audit.Record) string { return r.RunID }},
	{"principal", "principal", func(f *auditFilter) *string { return &f.Principal },
		func(r audit.Record) string { return r.Principal }},
}

func (c *Console) filterOf(values url.Values) auditFilter {
	f := auditFilter{periodFilter: c.periodOf(values)}
	for _, field := range filterFields {
		*field.in(&f) = strings.TrimSpace(values.Get(field.name))
	}
	f.Before, _ = strconv.ParseUint(values.Get("before"), 10, 53) // an invalid number means the newest
	return f
}

func (f *auditFilter) query(before uint64) string {
	values := url.Values{}
	for _, field := range filterFields {
		if text := *field.in(f); text != "" {
			values.Set(field.name, text)
		}
	}
	f.add(values)
	if before > 0 {
		values.Set("before", strconv.FormatUint(before, 10))
	}
	return values.Encode()
}

func (f *auditFilter) matches(r audit.Record) bool {
	for _, field := range filterFields {
		if text := *field.in(f); text != "" && text != field.of(r) {
			return false
		}
	}
	return f.period.Has(r)
}

// words returns a text that the lines of all matching records contain. It may be empty.
func (f *auditFilter) words() []string {
	for _, field := range filterFields {
		// Letters, digits and "_" are not escaped in a line.
		if text := *field.in(f); text != "" && !strings.ContainsFunc(text, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return []string{`"` + field.member + `":"` + text + `"`}
		}
	}
	return []string{""}
}

// errBegun ends a scan at the beginning of the period.
var errBegun = errors.New("the period begins")

type shownAudit struct {
	Filter   auditFilter
	Records  []shownRecord
	Kinds    []audit.Kind
	Outcomes []string
	Formats  []audit.Format
	Newer    string // URL of newer records; empty if these are the newest
	Older    string // URL of older records; may be empty
	Partly   bool   // only a part of the log was searched
	Report   string // of a verification, if it was requested
	Sound    bool   // the result
	Problem  string // why the records cannot be shown
}

// shownRecord is a record with all of it as JSON.
type shownRecord struct {
	audit.Record
	JSON string
}

// readLog fills in the records of a page.
func (c *Console) readLog(f auditFilter) shownAudit {
	shown := shownAudit{Filter: f, Problem: f.Problem, Kinds: audit.Kinds(), Formats: audit.Formats(),
		Outcomes: []string{audit.OutcomeOK, audit.OutcomeError, audit.OutcomeRefused, audit.OutcomeUnknown}}
	last := uint64(0)
	whole, err := audit.ScanBefore(c.opts.System.Directories().Audit, f.Before, auditBytes, f.words(),
		func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
			r, err := record()
			if err != nil {
				return false, err
			}
			last = b.Seq
			if f.period.Before(r) {
				return false, errBegun
			}
			if !f.matches(r) {
				return true, nil
			}
			if len(shown.Records) == auditPage {
				return false, nil
			}
			raw, err := json.MarshalIndent(r, "", "  ")
			shown.Records = append(shown.Records, shownRecord{r, string(raw)})
			return true, err
		})
	switch {
	case errors.Is(err, errBegun):
		whole, err = true, nil
	case errors.Is(err, fs.ErrNotExist):
		return shown
	}
	if err != nil {
		shown.Problem = "The log cannot be read: " + err.Error()
		return shown
	}
	if n := len(shown.Records); n > 0 && !whole && n == auditPage {
		shown.Older = "/audit?" + f.query(shown.Records[n-1].Seq)
	} else if !whole && last > 0 {
		shown.Older, shown.Partly = "/audit?"+f.query(last), true
	}
	if f.Before > 0 {
		shown.Newer = "/audit?" + f.query(0)
	}
	return shown
}

func showAudit(c *Console, q *query) (view, error) {
	return view{title: "Audit log", data: c.readLog(c.filterOf(q.URL.Query()))}, nil
}

// verifyAudit does what airlock audit verify does.
func verifyAudit(c *Console, q *query) (view, error) {
	if !c.verifying.TryLock() {
		return view{}, &refusal{http.StatusServiceUnavailable, "The log is being verified already.",
			"Try again when that is done."}
	}
	defer c.verifying.Unlock()
	shown := c.readLog(auditFilter{})
	directories := c.opts.System.Directories()
	report, err := audit.Verify(directories.Audit, &audit.VerifyOptions{Keys: directories.Keys})
	if err != nil {
		return view{}, err
	}
	var text strings.Builder
	if err := audit.WriteReport(&text, report); err != nil {
		return view{}, err
	}
	shown.Report, shown.Sound = text.String(), report.OK()
	return view{title: "Audit log", data: shown}, nil
}

// exportAudit sends what airlock audit export prints.
func exportAudit(c *Console, q *query) (view, error) {
	asked := q.URL.Query()
	format := audit.Format(asked.Get("format"))
	names := map[audit.Format]string{audit.FormatJSONL: "audit.jsonl", audit.FormatOCSF: "audit.ocsf.jsonl",
		audit.FormatOTLP: "audit.otlp.jsonl"}
	if names[format] == "" {
		return view{}, &refusal{http.StatusUnprocessableEntity, "There is no such format.",
			"The formats are jsonl, ocsf and otlp."}
	}
	opts := &audit.ExportOptions{RunID: asked.Get("run"), Version: c.opts.Status(q.Context()).Version}
	if text := asked.Get("from"); text != "" {
		from, err := strconv.ParseUint(text, 10, 53)
		if err != nil {
			return view{}, &refusal{http.StatusUnprocessableEntity, "The number of the first record is not a number.",
				""}
		}
		opts.From = from
	}
	period := c.periodOf(asked)
	if period.Problem != "" {
		return view{}, &refusal{http.StatusUnprocessableEntity, sentence(period.Problem), ""}
	}
	opts.Period = period.period
	directory := c.opts.System.Directories().Audit
	return view{stream: &stream{name: names[format],
		write: func(w io.Writer) error { return audit.Export(w, directory, format, opts) }}}, nil
}
