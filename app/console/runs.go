package console

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/listing"
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
	runsPerPage = 50
	maxRunPages = 1000
)

// runsPage is the data of the list of runs.
type runsPage struct {
	Filter      runFilter
	Rows        []listing.Run
	Here        string // the address of the live part, with its filter
	Prev, Next  string // the addresses of other pages; may be empty
	Page, Going int
	Missing     string // a sentence about nodes that do not answer; may be empty
	Nodes       bool   // the rows have nodes
}

// runFilter selects the runs that are listed.
type runFilter struct {
	State, Text string
	periodFilter
	Node   string        // the reference of the node whose runs are listed; empty: those of all nodes
	page   int           // from 1; of one node
	before listing.Place // of all nodes: the last run of the page before
}

// States returns the states that can be selected.
func (runFilter) States() []string { return []string{listing.GoingOn, listing.IsOK, listing.NotOK} }

func (c *Console) runFilterOf(values url.Values) runFilter {
	f := runFilter{State: values.Get("state"), Text: strings.TrimSpace(values.Get("text")),
		periodFilter: c.periodOf(values), Node: values.Get(nodeField), page: 1}
	if n, err := strconv.Atoi(values.Get("page")); err == nil && n > 1 {
		f.page = min(n, maxRunPages)
	}
	f.before = listing.ParsePlace(values.Get("before"))
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
	if before := f.before.String(); before != "" {
		values.Set("before", before)
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// showRuns lists runs, the newest first: those in progress from the registry, and those of the audit log. In a cluster,
// they are those of all nodes, unless the filter names one.
func showRuns(c *Console, q *query) (view, error) {
	f := c.runFilterOf(q.URL.Query())
	asked := listing.RunQuery{State: f.State, Text: f.Text, Period: f.period, Limit: runsPerPage}
	p := runsPage{Filter: f, Page: f.page, Here: f.address("/runs/now", f.page)}
	var list listing.Runs
	var err error
	if one := c.node == nil || f.Node != ""; one {
		asked.Skip = (f.page - 1) * runsPerPage
		list, err = c.opts.Lists.OwnRuns(q.who, asked)
	} else {
		p.Nodes, asked.Before = true, f.before
		list, err = c.opts.Lists.Runs(q.Context(), q.who, asked)
	}
	if err != nil {
		return view{}, err
	}
	p.Rows, p.Going, p.Missing = list.Rows, list.Going, listing.Missing(list.Unanswered)
	next, first := f, f
	first.before = listing.Place{}
	switch {
	case p.Nodes:
		if n := len(p.Rows); list.More && n > 0 {
			next.before = p.Rows[n-1].Place()
			p.Next = next.address("/runs", 1)
		}
		if f.before != first.before {
			p.Prev = first.address("/runs", 1)
		}
	default:
		if list.More {
			p.Next = f.address("/runs", f.page+1)
		}
		if f.page > 1 {
			p.Prev = f.address("/runs", f.page-1)
		}
	}
	return view{title: "Runs", data: p}, nil
}
