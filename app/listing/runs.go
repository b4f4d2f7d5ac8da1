package listing

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// The states of a run in progress, in addition to those of runlog.Run.
const (
	Queued  = "queued"
	Running = "running"
	Waiting = "waiting" // for a person
)

// The values of RunQuery.State.
const (
	GoingOn = "going on"
	IsOK    = "ok"
	NotOK   = "not ok"
	Failed  = "failed" // in progress, or over and not ok
)

// maxTitleSearch is the number of the newest runs whose titles a search compares, too.
const maxTitleSearch = 200

// Run is a run in a list.
type Run struct {
	ID         string    `json:"run_id"`
	Node       string    `json:"node,omitempty"` // of a cluster
	State      string    `json:"state"`          // queued, running, waiting, or as runlog.Run has it
	Going      bool      `json:"going,omitempty"`
	Began      time.Time `json:"began,omitzero"`           // zero: not yet
	Suspended  time.Time `json:"suspended_since,omitzero"` // since when it waits without a sandbox
	DurationMS int64     `json:"duration_ms"`
	Language   string    `json:"language,omitempty"`
	Owner      string    `json:"principal,omitempty"`
	Session    string    `json:"session_id,omitempty"`
	Calls      int       `json:"calls"`
	Title      string    `json:"title,omitempty"`
}

// Heading returns the title of the run, or another text for a run without one.
func (r Run) Heading() string {
	return cmp.Or(r.Title, "A program in "+cmp.Or(r.Language, "an unknown language"))
}

// Took returns how long the run took, or has taken.
func (r Run) Took() time.Duration { return time.Duration(r.DurationMS) * time.Millisecond }

// Class returns the CSS class of the state.
func (r Run) Class() string {
	switch {
	case r.Going, r.State == runlog.Unfinished, r.State == runlog.Suspended:
		return "waiting"
	case r.State == runlog.OK:
		return "ok"
	}
	return "bad"
}

// RunQuery selects runs.
type RunQuery struct {
	State  string // one of the constants; empty: all
	Text   string // in the title, the tools, the ID, the state, the language, the owner or the session
	Period audit.Period
	// Before has the last run of the page before; the zero value: the list begins with the newest run.
	Before Place
	Skip   int // runs that are over and are left out, of this process alone
	Limit  int // of the runs that are over
	Titles int // how many of them get titles; 0: all
}

// Place is the place of a run in the list of all nodes.
type Place struct {
	Began time.Time
	ID    string
}

// Place returns the place of a run.
func (r Run) Place() Place { return Place{r.Began, r.ID} }

// String returns the form that ParsePlace reads. The zero value has an empty one.
func (p Place) String() string {
	if p == (Place{}) {
		return ""
	}
	return p.Began.UTC().Format(time.RFC3339Nano) + " " + p.ID
}

// ParsePlace reads a place. Other texts give the zero value.
func ParsePlace(text string) Place {
	began, id, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, began)
	if err != nil {
		return Place{}
	}
	return Place{at, id}
}

// after reports whether a run is behind a place. Runs with equal times are sorted by their IDs.
func (p Place) after(r Run) bool {
	return p == Place{} || newestFirst(Run{Began: p.Began, ID: p.ID}, r) < 0
}

func newestFirst(a, b Run) int {
	return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(a.ID, b.ID))
}

// Runs are the runs of a page: those in progress, and then those that are over, each the newest first.
type Runs struct {
	Rows       []Run
	Going      int      // the runs in progress, whether they match or not
	More       bool     // older runs match, too
	Unanswered []string // nodes whose runs are missing
}

// OwnRuns returns the runs of this process that a caller sees.
func (l *Lists) OwnRuns(who caller.Caller, q RunQuery) (Runs, error) { return l.ownRuns(who, q) }

// Runs returns the runs of all nodes that a caller sees.
func (l *Lists) Runs(ctx context.Context, who caller.Caller, q RunQuery) (Runs, error) {
	parts, unanswered, err := gather(ctx, l, kindRuns, who, q, l.ownRuns)
	if err != nil || len(parts) == 1 {
		if err != nil {
			return Runs{}, err
		}
		parts[0].list.Unanswered = unanswered
		return parts[0].list, nil
	}
	all := Runs{Unanswered: unanswered}
	var over []Run
	for _, p := range parts {
		all.Going += p.list.Going
		all.More = all.More || p.list.More
		for _, row := range p.list.Rows {
			if row.Going {
				all.Rows = append(all.Rows, row)
			} else {
				over = append(over, row)
			}
		}
	}
	slices.SortFunc(all.Rows, newestFirst)
	slices.SortFunc(over, newestFirst)
	if len(over) > q.Limit {
		over, all.More = over[:q.Limit], true
	}
	all.Rows = append(all.Rows, over...)
	return all, nil
}

func (l *Lists) ownRuns(who caller.Caller, q RunQuery) (Runs, error) {
	byTool, err := l.opts.Log.OfTool(q.Text)
	if err != nil {
		return Runs{}, err
	}
	going := map[string]bool{}
	list := Runs{}
	for _, row := range l.GoingRuns(who) {
		list.Going++
		if going[row.ID] = true; q.Before == (Place{}) && q.Skip == 0 && q.matches(row, byTool) {
			list.Rows = append(list.Rows, row)
		}
	}
	slices.SortFunc(list.Rows, newestFirst)
	titles, load := maxTitleSearch, l.opts.Log.Recordings()
	match := func(run runlog.Run) bool {
		if going[run.ID] || !maySee(who, run.Owner) {
			return false
		}
		row := l.OfLog(run)
		if q.Text != "" && titles > 0 {
			titles--
			row.Title = l.titles.of(run.ID, load)
		}
		return q.Before.after(row) && q.matches(row, byTool)
	}
	past, more, err := l.opts.Log.List(match, q.Skip, q.Limit)
	for i, run := range past {
		row := l.OfLog(run)
		if q.Titles == 0 || i < q.Titles {
			row.Title = l.titles.of(row.ID, load)
		}
		list.Rows = append(list.Rows, row)
	}
	list.More = more
	return list, err
}

// maySee reports whether a caller sees the runs of an owner. A person sees the runs of all their hosts.
func maySee(who caller.Caller, owner caller.Owner) bool {
	return who.May(caller.People, caller.See, caller.Object{Kind: caller.Run, Owner: owner})
}

// matches reports whether a run matches the query. byTool has the runs with a call of a tool that the text names.
func (q RunQuery) matches(row Run, byTool map[string]bool) bool {
	if !q.Period.Contains(row.Began) {
		return false
	}
	switch q.State {
	case GoingOn:
		if !row.Going {
			return false
		}
	case Failed:
		if !row.Going && (row.State == runlog.OK || row.State == runlog.Unfinished || row.State == runlog.Suspended) {
			return false
		}
	case IsOK:
		if row.State != runlog.OK {
			return false
		}
	case NotOK:
		if row.Going || row.State == runlog.OK {
			return false
		}
	}
	if q.Text == "" || byTool[row.ID] {
		return true
	}
	return slices.ContainsFunc([]string{row.Title, row.ID, row.State, row.Language, row.Owner, row.Session},
		func(text string) bool {
			return strings.Contains(strings.ToLower(text), strings.ToLower(q.Text))
		})
}

// GoingRuns returns the runs in progress of this process that a caller sees.
func (l *Lists) GoingRuns(who caller.Caller) []Run {
	var list []Run
	for _, run := range l.opts.Runs.All() {
		status := run.Status()
		if row := l.OfStatus(status); row.Going && maySee(who, status.Owner) {
			row.Title = l.titles.ofCode(run.Code())
			list = append(list, row)
		}
	}
	return list
}

// OfStatus returns a run of the registry. A run that is done is not in progress: the log has it.
func (l *Lists) OfStatus(s runs.Status) Run {
	row := Run{ID: s.ID, Node: l.opts.Node.Name(), Language: s.Language, Owner: s.Owner.Principal,
		Session: s.Owner.Session, Going: s.State != runs.Done, Began: s.Asked, State: Running, Suspended: s.Suspended}
	switch {
	case len(s.Questions) > 0, !s.Suspended.IsZero():
		row.State = Waiting
	case s.State == runs.Queued:
		row.State = Queued
	}
	if !s.Began.IsZero() {
		row.Began = s.Began
		row.DurationMS = l.opts.Now().Sub(s.Began).Truncate(time.Second).Milliseconds()
	}
	return row
}

// OfLog returns a run of the audit log.
func (l *Lists) OfLog(run runlog.Run) Run {
	row := Run{ID: run.ID, Node: l.opts.Node.Name(), State: run.State, Language: run.Language, Owner: run.Principal,
		Session: run.SessionID, Calls: run.Calls, DurationMS: run.DurationMS}
	row.Began, _ = time.Parse(time.RFC3339Nano, run.Began) // the zero time is not shown
	row.Suspended, _ = time.Parse(time.RFC3339Nano, run.Suspended)
	return row
}
