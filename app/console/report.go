package console

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/audit"
)

// reportSection answers who sent what where, on whose behalf, and who approved it.
func reportSection() section {
	return section{name: "Report", path: "/report", scope: auth.ScopeAudit, template: "report", pages: []page{
		{pattern: "GET /report", scope: auth.ScopeAudit, show: showReport},
	}}
}

// reportPage is how many rows of a report a page shows; the files have all.
const reportPage = 200

// defaultSince is the period of a report without another one.
const defaultSince = "7d"

type shownReport struct {
	periodFilter
	Principal, Server string

	Rows  []audit.Row // the newest first
	More  bool        // there are more rows than are shown
	Files map[audit.ReportForm]string
}

// showReport shows the newest acts, or with ?format sends all of them as a file. It reads the log of
// the whole period, so it does that for one reader at a time.
func showReport(c *Console, q *query) (view, error) {
	asked := q.URL.Query()
	if len(asked) == 0 {
		asked.Set("since", defaultSince)
	}
	shown := shownReport{periodFilter: c.periodOf(asked),
		Principal: strings.TrimSpace(asked.Get("principal")), Server: strings.TrimSpace(asked.Get("server"))}
	if shown.Problem != "" {
		return view{}, &refusal{http.StatusUnprocessableEntity, sentence(shown.Problem), ""}
	}
	opts := audit.ReportOptions{Principal: shown.Principal, Server: shown.Server, Period: shown.period}
	directory := c.opts.System.Directories().Audit
	if form := audit.ReportForm(asked.Get("format")); form != "" {
		if !slices.Contains(audit.ReportForms(), form) {
			return view{}, &refusal{http.StatusUnprocessableEntity, "There is no such format.",
				"The formats are table, csv, json and html."}
		}
		return view{stream: &stream{name: "airlock-report." + string(form),
			write: func(w io.Writer) error { return audit.WriteRows(w, directory, form, opts) }}}, nil
	}
	if !c.verifying.TryLock() {
		return view{}, &refusal{http.StatusServiceUnavailable, "The log is being read already.",
			"Try again when that is done."}
	}
	defer c.verifying.Unlock()
	err := audit.EachRow(directory, opts, func(r audit.Row) error {
		shown.Rows = append(shown.Rows, r)
		if len(shown.Rows) > 2*reportPage {
			shown.Rows, shown.More = slices.Delete(shown.Rows, 0, reportPage), true
		}
		return q.Context().Err()
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return view{}, err
	}
	if n := len(shown.Rows); n > reportPage {
		shown.Rows, shown.More = shown.Rows[n-reportPage:], true
	}
	slices.Reverse(shown.Rows)
	shown.Files = map[audit.ReportForm]string{}
	for _, form := range audit.ReportForms() {
		values := url.Values{"since": {shown.Since}, "until": {shown.Until}, "principal": {shown.Principal},
			"server": {shown.Server}, "format": {string(form)}}
		shown.Files[form] = "/report?" + values.Encode()
	}
	return view{title: "Report", data: shown}, nil
}
