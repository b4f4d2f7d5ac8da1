package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// runsSection lists the runs that the caller may see.
func runsSection() section {
	return section{name: "Runs", path: "/runs", scope: auth.ScopeRun, template: "runs", pages: []page{
		{pattern: "GET /runs", scope: auth.ScopeRun, show: showRuns},
		{pattern: "GET /runs/now", scope: auth.ScopeRun, show: func(c *Console, q *query) (view, error) {
			v, err := showRuns(c, q)
			v.part = "now"
			return v, err
		}},
	}}
}

const (
	runsPerPage    = 50
	maxRunPages    = 1000
	maxTitleSearch = 200 // the newest runs, whose titles a search compares, too
)

// The states of a run in progress, in addition to those of runlog.Run.
const (
	stateQueued  = "queued"
	stateRunning = "running"
	stateWaiting = "waiting" // for a person
)

// runRow is a run in the list.
type runRow struct {
	ID, State, Language, Owner, Session string
	Title                               string    // may be empty
	Began                               time.Time // zero: not yet
	Suspended                           time.Time // since when it waits without a sandbox; zero if it does not
	Took                                time.Duration
	Calls                               int
	Going                               bool
}

// Heading returns the title of the run, or another text for a run without one.
func (r runRow) Heading() string {
	return cmp.Or(r.Title, "A program in "+cmp.Or(r.Language, "an unknown language"))
}

// Class returns the CSS class of the state.
func (r runRow) Class() string { return classOf(r.State, r.Going) }

func classOf(state string, going bool) string {
	switch {
	case going, state == runlog.Unfinished, state == runlog.Suspended:
		return "waiting"
	case state == runlog.OK:
		return "ok"
	}
	return "bad"
}

// runsPage is the data of the list of runs.
type runsPage struct {
	Filter      runFilter
	Rows        []runRow
	Here        string // the address of the live part, with its filter
	Prev, Next  string // the addresses of other pages; may be empty
	Page, Going int
}

// runFilter selects the runs that are listed.
type runFilter struct {
	State, Text string
	periodFilter
	Node   string          // the reference of the node whose runs are listed; empty: that of the session
	page   int             // from 1
	byTool map[string]bool // the runs with a call of a tool that Text names
}

// States returns the states that can be selected.
func (runFilter) States() []string { return []string{"going on", "ok", "not ok"} }

func (c *Console) runFilterOf(values url.Values) runFilter {
	f := runFilter{State: values.Get("state"), Text: strings.TrimSpace(values.Get("text")),
		periodFilter: c.periodOf(values), Node: values.Get(nodeField), page: 1}
	if n, err := strconv.Atoi(values.Get("page")); err == nil && n > 1 {
		f.page = min(n, maxRunPages)
	}
	return f
}

// address returns the URL of a page of the list with this filter.
func (f runFilter) address(path string, page int) string {
	values := url.Values{}
	for name, value := range map[string]string{"state": f.State, "text": f.Text, nodeField: f.Node} {
		if value != "" {
			values.Set(name, value)
		}
	}
	f.add(values)
	if page > 1 {
		values.Set("page", strconv.Itoa(page))
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// takes reports whether a run matches the filter.
func (f runFilter) takes(row runRow) bool {
	if !f.period.Contains(row.Began) {
		return false
	}
	switch f.State {
	case "going on":
		if !row.Going {
			return false
		}
	case "ok":
		if row.State != runlog.OK {
			return false
		}
	case "not ok":
		if row.Going || row.State == runlog.OK {
			return false
		}
	}
	if f.Text == "" || f.byTool[row.ID] {
		return true
	}
	return slices.ContainsFunc([]string{row.Title, row.ID, row.State, row.Language, row.Owner, row.Session},
		func(text string) bool {
			return strings.Contains(strings.ToLower(text), strings.ToLower(f.Text))
		})
}

// showRuns lists runs, the newest first: those in progress from the registry, and those of the
// audit log.
func showRuns(c *Console, q *query) (view, error) {
	f := c.runFilterOf(q.URL.Query())
	var err error
	if f.byTool, err = c.opts.RunLog.OfTool(f.Text); err != nil {
		return view{}, err
	}
	going := map[string]runRow{}
	for _, row := range c.goingRuns(q.who) {
		going[row.ID] = row
	}
	p := runsPage{Filter: f, Page: f.page, Going: len(going), Here: f.address("/runs/now", f.page)}
	titles := maxTitleSearch
	match := func(run runlog.Run) bool {
		if _, isGoing := going[run.ID]; isGoing || !reaches(q.who, caller.See, caller.Run, run.Owner) {
			return false
		}
		row := rowOfListed(run)
		if f.Text != "" && titles > 0 {
			titles--
			row.Title = c.titles.of(run.ID)
		}
		return f.takes(row)
	}
	if f.page == 1 {
		p.Rows = newestFirst(going, f)
	}
	past, more, err := c.opts.RunLog.List(match, (f.page-1)*runsPerPage, runsPerPage)
	if err != nil {
		return view{}, err
	}
	for _, run := range past {
		row := rowOfListed(run)
		row.Title = c.titles.of(row.ID)
		p.Rows = append(p.Rows, row)
	}
	if more {
		p.Next = f.address("/runs", f.page+1)
	}
	if f.page > 1 {
		p.Prev = f.address("/runs", f.page-1)
	}
	return view{title: "Runs", data: p}, nil
}

// newestFirst returns the runs in progress that match the filter, the newest first.
func newestFirst(going map[string]runRow, f runFilter) []runRow {
	var rows []runRow
	for _, row := range going {
		if f.takes(row) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b runRow) int { return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(a.ID, b.ID)) })
	return rows
}

// goingRuns returns the runs in progress that a caller may see.
func (c *Console) goingRuns(who caller.Caller) []runRow {
	var list []runRow
	for _, run := range c.opts.Runs.All() {
		status := run.Status()
		if row := rowOfRun(status, c.opts.Now()); row.Going && reaches(who, caller.See, caller.Run, status.Owner) {
			row.Title = c.titles.ofCode(run.Code())
			list = append(list, row)
		}
	}
	return list
}

// rowOfRun returns the row of a run in the registry. A run that is done is not in progress: the
// log has it.
func rowOfRun(s runs.Status, now time.Time) runRow {
	row := runRow{ID: s.ID, Language: s.Language, Owner: s.Owner.Principal, Session: s.Owner.Session,
		Going: s.State != runs.Done, Began: s.Asked, State: stateRunning, Suspended: s.Suspended}
	switch {
	case len(s.Questions) > 0, !s.Suspended.IsZero():
		row.State = stateWaiting
	case s.State == runs.Queued:
		row.State = stateQueued
	}
	if !s.Began.IsZero() {
		row.Began = s.Began
		row.Took = now.Sub(s.Began).Truncate(time.Second)
	}
	return row
}

// rowOfListed returns the row of a run in the audit log.
func rowOfListed(run runlog.Run) runRow {
	row := runRow{ID: run.ID, State: run.State, Language: run.Language, Owner: run.Principal, Session: run.SessionID,
		Calls: run.Calls, Took: time.Duration(run.DurationMS) * time.Millisecond}
	row.Began, _ = time.Parse(time.RFC3339Nano, run.Began) // the zero time is not shown
	return row
}
