package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// runSection shows one run: its audit records as a tree and a timeline, its code, its output
// and its outcome.
func runSection() section {
	return section{path: "/runs", scope: auth.ScopeRun, template: "run", pages: []page{
		{pattern: "GET /runs/{run}", scope: auth.ScopeRun, show: showRun},
		{pattern: "GET /runs/{run}/now", scope: auth.ScopeRun, show: func(c *Console, q *query) (view, error) {
			v, err := showRun(c, q)
			v.part = "now"
			return v, err
		}},
		{pattern: "GET /runs/{run}/text/{part}", scope: auth.ScopeRun, show: saveRunText},
		{pattern: "GET /runs/{run}/files/{name}", scope: auth.ScopeRun, show: saveRunFile},
		{pattern: "POST /runs/{run}/cancel", scope: auth.ScopeRun, show: cancelRun},
	}}
}

// maxTextShown is the maximum size of a code, an output or a result on a page, in bytes.
const maxTextShown = 64 << 10

// maxSteps is the maximum number of calls and events of a run on a page. The first ones are shown.
const maxSteps = 300

// runPage is the data of the page of a run.
type runPage struct {
	Row       listing.Run
	Start     *audit.Record
	End       *audit.Record
	Steps     []step
	Left      int // steps that are not shown
	Timeline  timeline
	Questions []approval.Question // that wait for a person
	Answers   bool                // the caller may answer them
	Suspended time.Time           // since when it waits without a sandbox; zero if it does not
	Durable   bool                // it is suspended, and goes on after a restart
	Texts     []runText
	Lost      string // a sentence about the node of the run and its copies; may be empty
	Unkept    string // why the code and the output are missing; empty if they are not
	Files     []attachment.File
	MayCancel bool
}

// Live reports whether the run is in progress, so that the page is updated.
func (p runPage) Live() bool { return p.Row.Going }

// step is one line of the tree.
type step struct {
	Name, State, Class string
	At                 time.Time
	Facts              []fact
}

// fact is one labelled detail of a step.
type fact struct{ Label, Text string }

// runText is a text that belongs to a run.
type runText struct {
	Part, Name string // code, stdout, stderr, result
	Says       string // the error in a result
	Text       string
	Size       int
	Cut        bool // Text is its beginning
}

// runState is a run as the registry and the log have it.
type runState struct {
	status *runs.Status // nil: the registry does not have it
	run    *runs.Run
	listed *runlog.Run    // nil: the log does not have it
	tree   *audit.RunTree // nil: the log does not have it
	lost   *listing.Lost  // from copies, because its node does not answer; nil: it is not
}

// findRun returns a run. Runs that the caller may not see are not found.
func (c *Console) findRun(q *query) (runState, error) {
	id := q.PathValue("run")
	var s runState
	for _, run := range c.opts.Lists.Registry().All() {
		if run.ID() == id {
			status := run.Status()
			s.run, s.status = run, &status
		}
	}
	listed, ok, err := c.opts.Lists.Log().Find(id)
	if err != nil {
		return runState{}, err
	}
	if ok {
		s.listed = &listed
	}
	if s.status == nil && (!ok || c.node.Owner(q.Context(), id) != c.node.Name()) { // otherwise it is of this node
		switch lost, err := c.opts.Lists.Lost(q.Context(), q.who, id); {
		case errors.Is(err, listing.ErrLost):
			return runState{}, errNodeAway
		case err != nil:
			return runState{}, err
		case lost != nil:
			return runState{listed: &lost.Run, tree: lost.Tree, lost: lost}, nil
		}
	}
	if s.status == nil && s.listed == nil || s.status != nil &&
		!reaches(q.who, caller.See, caller.Run, s.status.Owner) || s.listed != nil &&
		!reaches(q.who, caller.See, caller.Run, s.listed.Owner) {
		return runState{}, notFound("run")
	}
	if s.listed != nil {
		s.tree, err = c.opts.Lists.Log().Tree(listed)
		if errors.Is(err, audit.ErrNoRun) { // its ID is not one that Airlock makes
			return runState{}, notFound("run")
		}
		if err != nil {
			return runState{}, err
		}
	}
	return s, nil
}

// row returns the run as a row of the list.
func (s runState) row(lists *listing.Lists) listing.Run {
	if s.status != nil && (s.listed == nil || s.status.State != runs.Done) {
		row := lists.OfStatus(*s.status)
		if s.status.Err != nil {
			row.State, row.Going = "not begun", false
		}
		return row
	}
	return lists.OfLog(*s.listed)
}

func showRun(c *Console, q *query) (view, error) {
	s, err := c.findRun(q)
	if err != nil {
		return view{}, err
	}
	p := runPage{Row: s.row(c.opts.Lists), Answers: q.may(auth.ScopeApprove)}
	p.MayCancel = p.Row.Going && s.run != nil
	if s.status != nil {
		p.Questions, p.Suspended, p.Durable = s.status.Questions, s.status.Suspended, s.status.Durable
	}
	if s.lost != nil {
		p.Lost = s.lost.String()
	}
	if s.tree != nil {
		p.Start, p.End = s.tree.Start, s.tree.End
		p.Steps, p.Left = stepsOf(s.tree)
		p.Timeline = timelineOf(s.tree, c.opts.Now())
	}
	p.Texts, p.Unkept = c.texts(s)
	for i := range p.Texts {
		p.Texts[i].shorten()
	}
	if s.tree != nil {
		if p.Files, err = c.opts.Lists.Log().Files(s.tree.ID); err != nil {
			return view{}, err
		}
	}
	if s.run != nil && p.Row.Going {
		p.Row.Title = c.opts.Lists.TitleOfCode(s.run.Code())
	} else {
		p.Row.Title = c.opts.Lists.Title(p.Row.ID)
	}
	return view{title: cmp.Or(p.Row.Title, "Run "+p.Row.ID), data: p}, nil
}

// texts returns the code, the output and the result of a run, if they are known.
func (c *Console) texts(s runState) (texts []runText, unkept string) {
	add := func(part, name, text string) {
		if text != "" {
			text = c.opts.Clean(text)
			texts = append(texts, runText{Part: part, Name: name, Text: text, Size: len(text)})
		}
	}
	if s.run != nil && s.status.State != runs.Done {
		printed := s.run.Printed()
		add("code", "Code", s.run.Code())
		add("stdout", "Output (stdout)", printed.Stdout)
		add("stderr", "Output (stderr)", printed.Stderr)
		return texts, ""
	}
	if s.tree == nil {
		return nil, "the run did not begin"
	}
	shown, why := c.opts.Lists.Log().Show(s.tree)
	// the recording is missing, but this process has the outcome
	if why != nil && s.status != nil && s.status.Outcome != nil {
		outcome := s.status.Outcome
		shown.Result = outcome.Envelope.Result.Data
		shown.Stdout, shown.Stderr, shown.Kept, why = outcome.Stdout, outcome.Stderr, true, nil
	}
	if why != nil {
		return nil, why.Error()
	}
	add("code", "Code", shown.Code)
	add("result", "Result", string(shown.Result))
	add("stdout", "Output (stdout)", shown.Stdout)
	add("stderr", "Output (stderr)", shown.Stderr)
	return texts, ""
}

// shorten cuts a text to maxTextShown. It indents a result, and sets Says.
func (t *runText) shorten() {
	if t.Part == "result" && len(t.Text) <= maxTextShown {
		var result orchestrator.Result
		if strictjson.UnmarshalOpen([]byte(t.Text), &result) == nil && result.Error != nil {
			t.Says = result.Error.Type + ": " + result.Error.Message
		}
		t.Text = string(canon.Indent([]byte(t.Text)))
	}
	if len(t.Text) > maxTextShown {
		t.Text, t.Cut = strings.ToValidUTF8(t.Text[:maxTextShown], ""), true
	}
}

// stepsOf returns the first maxSteps calls and events of a run, and the number of the others.
func stepsOf(tree *audit.RunTree) (steps []step, left int) {
	all := tree.Steps()
	for i, s := range all {
		if i == maxSteps {
			return steps, len(all) - i
		}
		if s.Event != nil {
			steps = append(steps, stepOfEvent(*s.Event))
		} else {
			steps = append(steps, stepOfCall(*s.Call))
		}
	}
	return steps, 0
}

func stepOfCall(c audit.CallTree) step {
	last := c.Last()
	s := step{Name: last.ServerID + "/" + last.ToolName, State: "under way", Class: "waiting", At: timeOf(last.Time)}
	if c.Outcome != nil {
		s.State, s.Class = c.Outcome.Outcome, "bad"
		if c.Outcome.Outcome == audit.OutcomeOK {
			s.Class = "ok"
		}
		if c.Outcome.ErrorType != "" {
			s.State += ", " + c.Outcome.ErrorType
		}
		s.say("took", fmt.Sprintf("%d ms", c.Outcome.DurationMS))
		if c.Outcome.ResultSize > 0 {
			s.say("result", fmt.Sprintf("%d bytes", c.Outcome.ResultSize))
		}
	}
	s.say("decision", last.RulingLine())
	for _, asked := range c.Approvals {
		s.say("approval", clock(timeOf(asked.Time))+" UTC "+asked.Detail)
	}
	s.say("arguments", c.ShownArguments())
	s.say("redacted", strings.TrimPrefix(last.RedactionsLine(), "redacted "))
	s.say("limit", last.Limit)
	if last.Kind != audit.KindApproval { // which is shown above
		s.say("why", last.Detail)
	}
	s.say("call", c.ID)
	return s
}

func stepOfEvent(r audit.Record) step {
	s := step{Name: string(r.Kind), State: r.Decision, Class: "waiting", At: timeOf(r.Time)}
	s.say("engine", r.Engine)
	s.say("verdict", r.Verdict)
	s.say("verification", r.VerificationID)
	s.say("error", r.ErrorType)
	s.say("why", r.Detail)
	return s
}

func (s *step) say(label, text string) {
	if text != "" {
		s.Facts = append(s.Facts, fact{label, text})
	}
}

// timeOf parses the time of a record. It returns the zero time if the text is not a time.
func timeOf(text string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

// saveRunText sends a whole text of a run as a file.
func saveRunText(c *Console, q *query) (view, error) {
	s, err := c.findRun(q)
	if err != nil {
		return view{}, err
	}
	texts, _ := c.texts(s)
	for _, text := range texts {
		if text.Part == q.PathValue("part") {
			return view{file: &download{name: s.row(c.opts.Lists).ID + "-" + text.Part + ".txt",
				content: []byte(text.Text), isText: true}}, nil
		}
	}
	return view{}, notFound("text")
}

// saveRunFile sends a file that a run has attached.
func saveRunFile(c *Console, q *query) (view, error) {
	s, err := c.findRun(q)
	if err != nil {
		return view{}, err
	}
	if s.tree == nil {
		return view{}, notFound("file")
	}
	file, content, err := c.opts.Lists.Log().File(s.tree.ID, q.PathValue("name"))
	if errors.Is(err, attachment.ErrNotFound) {
		return view{}, notFound("file")
	}
	if err != nil {
		return view{}, err
	}
	return view{file: &download{name: file.Name, content: content}}, nil
}

// cancelRun ends a run in progress.
func cancelRun(c *Console, q *query) (view, error) {
	s, err := c.findRun(q)
	if err != nil {
		return view{}, err
	}
	back := view{redirect: "/runs/" + q.PathValue("run")}
	if s.run == nil || s.status.State == runs.Done {
		q.notify("The run is over already.")
		return back, nil
	}
	s.run.Cancel()
	select { // show the outcome if the run ends soon
	case <-s.run.Done():
		q.notify("The run is cancelled.")
	case <-time.After(cancelTimeout):
		q.notify("The run is being cancelled.")
	case <-q.Context().Done():
		return view{}, &refusal{http.StatusServiceUnavailable, "The run is being cancelled.", ""}
	}
	return back, nil
}

// cancelTimeout is how long a page waits for a run that was cancelled.
const cancelTimeout = 2 * time.Second
