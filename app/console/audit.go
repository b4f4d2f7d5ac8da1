package console

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/canon"
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

// auditPage is the number of records of a page.
const auditPage = 50

// auditFilter selects the records that are shown.
type auditFilter struct {
	listing.RecordQuery
	periodFilter
	Node string // the reference of the node whose records are shown; empty: those of all nodes
}

func (c *Console) filterOf(values url.Values) auditFilter {
	f := auditFilter{periodFilter: c.periodOf(values), Node: values.Get(nodeField)}
	for _, field := range listing.RecordFields() {
		*field.Of(&f.RecordQuery) = strings.TrimSpace(values.Get(field.Name))
	}
	f.Period, f.Limit, f.Before = f.period, auditPage, listing.ParsePlaces(values.Get("before"))
	return f
}

func (f *auditFilter) address(before listing.Places) string {
	values := url.Values{}
	for _, field := range listing.RecordFields() {
		if text := *field.Of(&f.RecordQuery); text != "" {
			values.Set(field.Name, text)
		}
	}
	f.add(values)
	if f.Node != "" {
		values.Set(nodeField, f.Node)
	}
	if len(before) > 0 {
		values.Set("before", before.String())
	}
	return "/audit?" + values.Encode()
}

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
	Missing  string // a sentence about nodes that do not answer; may be empty
	Nodes    bool   // the records have nodes
	Of       string // the node whose log is verified and exported; empty without a cluster
}

// shownRecord is a record with all of it as JSON.
type shownRecord struct {
	listing.Record
	JSON string
}

// readLog returns the records of a page.
func (c *Console) readLog(q *query, f auditFilter) (shownAudit, error) {
	shown := shownAudit{Filter: f, Of: c.node.Name(), Kinds: audit.Kinds(), Formats: audit.Formats(),
		Outcomes: []string{audit.OutcomeOK, audit.OutcomeError, audit.OutcomeRefused, audit.OutcomeUnknown}}
	var list listing.Records
	if c.node == nil || f.Node != "" {
		list = c.opts.Lists.OwnRecords(f.RecordQuery)
	} else {
		shown.Nodes = true
		var err error
		if list, err = c.opts.Lists.Records(q.Context(), q.who, f.RecordQuery); err != nil {
			return shown, err
		}
	}
	shown.Partly, shown.Missing = list.Partly, list.Missing()
	shown.Problem = cmp.Or(list.Problem, f.Problem)
	for _, r := range list.Records {
		text, err := canon.Pretty(r.Record)
		if err != nil {
			return shown, err
		}
		shown.Records = append(shown.Records, shownRecord{r, text})
	}
	if len(list.Older) > 0 {
		shown.Older = f.address(list.Older)
	}
	if len(f.Before) > 0 {
		shown.Newer = f.address(nil)
	}
	return shown, nil
}

func showAudit(c *Console, q *query) (view, error) {
	shown, err := c.readLog(q, c.filterOf(q.URL.Query()))
	return view{title: "Audit log", data: shown}, err
}

// verifyAudit does what airlock audit verify does.
func verifyAudit(c *Console, q *query) (view, error) {
	if !c.verifying.TryLock() {
		return view{}, &refusal{http.StatusServiceUnavailable, "The log is being verified already.",
			"Try again when that is done."}
	}
	defer c.verifying.Unlock()
	shown, err := c.readLog(q, c.filterOf(url.Values{nodeField: {q.URL.Query().Get(nodeField)}}))
	if err != nil {
		return view{}, err
	}
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
