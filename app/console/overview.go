package console

import (
	"fmt"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// overviewSection shows what a person looks for first: what waits, what runs, what failed, and how
// much was used.
func overviewSection() section {
	return section{name: "Overview", path: "/overview", scope: auth.ScopeRun, template: "overview", pages: []page{
		{pattern: "GET /overview", scope: auth.ScopeRun, show: showOverview},
		{pattern: "GET /overview/now", scope: auth.ScopeRun, show: func(c *Console, q *query) (view, error) {
			v, err := showOverview(c, q)
			v.part = "now"
			return v, err
		}},
	}}
}

// Limits of the overview.
const (
	maxOverviewRows = 5
	failedWithin    = 24 * time.Hour

	maxOverviewFailed = 100 // that are counted
)

// overview is the data of the page. Its lists have at most maxOverviewRows rows.
type overview struct {
	Waiting, Going, Failed             []overviewRow
	WaitingMore, GoingMore, FailedMore int // rows that are not shown
	MayAnswer                          bool
	Charts                             []chart
	Quiet                              bool   // nothing has run yet
	Missing                            string // a sentence about nodes that do not answer; may be empty
}

// overviewRow is a question or a run.
type overviewRow struct {
	listing.Run
	Path  string
	Until time.Time // of a question
}

func showOverview(c *Console, q *query) (view, error) {
	o := overview{MayAnswer: q.may(auth.ScopeApprove)}
	now := c.opts.Now()
	for _, posted := range c.opts.Approvals.Posted() {
		if o.MayAnswer && reachesQuestion(q.who, caller.See, posted) {
			o.Waiting = append(o.Waiting, overviewRow{Run: listing.Run{Owner: posted.Principal,
				Title: posted.ServerID + "/" + posted.ToolName}, Path: "/questions/" + posted.ID,
				Until: posted.Expires})
		}
	}
	if err := c.overviewRuns(q, &o); err != nil {
		return view{}, err
	}
	hours := newUsage(now, time.Hour, 24)
	days := newUsage(now, 24*time.Hour, 14)
	runs, _, err := c.opts.Lists.Log().List(func(run runlog.Run) bool {
		return reaches(q.who, caller.See, caller.Run, run.Owner)
	}, 0, maxRunPages*runsPerPage)
	if err != nil {
		return view{}, err
	}
	for _, run := range runs {
		row := c.opts.Lists.OfLog(run)
		failed := run.State != runlog.OK && run.IsOver()
		hours.add(row, failed)
		days.add(row, failed)
	}
	at := ""
	if c.node != nil {
		at = " of node " + c.node.Name()
	}
	o.Charts = []chart{hours.chart("Runs" + at + " in the last 24 hours"),
		days.chart("Runs" + at + " in the last 14 days")}
	o.Waiting, o.WaitingMore = firstRows(o.Waiting)
	o.Going, o.GoingMore = firstRows(o.Going)
	o.Quiet = len(runs) == 0 && len(o.Going) == 0
	return view{title: "Overview", data: o}, nil
}

// overviewRuns adds the runs in progress and those that have failed, in a cluster those of all nodes.
func (c *Console) overviewRuns(q *query, o *overview) error {
	asked := listing.RunQuery{State: listing.Failed, Limit: maxOverviewFailed, Titles: maxOverviewRows,
		Period: audit.Period{Since: c.opts.Now().Add(-failedWithin)}}
	failed, err := c.opts.Lists.Runs(q.Context(), q.who, asked)
	if err != nil {
		return err
	}
	o.Missing = listing.Missing(failed.Unanswered)
	for _, row := range failed.Rows {
		if shown := (overviewRow{Run: row, Path: "/runs/" + row.ID}); row.Going {
			o.Going = append(o.Going, shown)
		} else {
			o.Failed = append(o.Failed, shown)
		}
	}
	o.Failed, o.FailedMore = firstRows(o.Failed)
	return nil
}

func firstRows(rows []overviewRow) (first []overviewRow, more int) {
	n := min(len(rows), maxOverviewRows)
	return rows[:n], len(rows) - n
}

// usage counts runs and calls by time.
type usage struct {
	first time.Time // the beginning of the first step
	step  time.Duration
	steps []usageStep
}

type usageStep struct{ runs, failed, calls int }

func newUsage(now time.Time, step time.Duration, n int) *usage {
	return &usage{now.UTC().Truncate(step).Add(-time.Duration(n-1) * step), step, make([]usageStep, n)}
}

func (u *usage) add(row listing.Run, failed bool) {
	at := row.Began.Sub(u.first)
	if at < 0 || at >= time.Duration(len(u.steps))*u.step {
		return
	}
	s := &u.steps[at/u.step]
	s.runs++
	s.calls += row.Calls
	if failed {
		s.failed++
	}
}

// chart is a row of bars in an SVG picture. All lengths are in its units.
type chart struct {
	Title, Text   string // Text describes the picture in words
	Width, Height int
	Bars          []chartBar
}

type chartBar struct {
	X, Y, W, H       int
	FailedY, FailedH int // the part of the bar for failed runs
	Label            string
	At               time.Time
}

const (
	chartWidth  = 480
	chartHeight = 96
)

func (u *usage) chart(title string) chart {
	c := chart{Title: title, Width: chartWidth, Height: chartHeight}
	most, all := 1, usageStep{}
	for _, s := range u.steps {
		most = max(most, s.runs)
		all.runs, all.failed, all.calls = all.runs+s.runs, all.failed+s.failed, all.calls+s.calls
	}
	c.Text = fmt.Sprintf("%d runs, %d failed, %d calls", all.runs, all.failed, all.calls)
	width := chartWidth / len(u.steps)
	for i, s := range u.steps {
		h := s.runs * chartHeight / most
		failed := s.failed * chartHeight / most
		c.Bars = append(c.Bars, chartBar{X: i * width, Y: chartHeight - h, W: width - 3, H: h,
			FailedY: chartHeight - failed, FailedH: failed, At: u.first.Add(time.Duration(i) * u.step),
			Label: fmt.Sprintf("%d runs, %d failed, %d calls", s.runs, s.failed, s.calls)})
	}
	return c
}
