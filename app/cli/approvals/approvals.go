// Package approvals has the verbs that list and answer questions to people.
package approvals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Verbs are the verbs of airlock approvals.
type Verbs struct {
	List    approvalsListVerb    `cmd:"" help:"List the calls that wait for a decision."`
	Show    approvalsShowVerb    `cmd:"" help:"Show a waiting call in full, and decide nothing."`
	Approve approvalsApproveVerb `cmd:"" help:"Let a waiting call happen, once: shows it and asks."`
	Deny    approvalsDenyVerb    `cmd:"" help:"Refuse a waiting call."`
	Watch   approvalsWatchVerb   `cmd:"" help:"Show each call that waits, and answer it with y or n."`

	Grants   grantsVerb   `cmd:"" help:"List the approvals that cover further calls."`
	Withdraw withdrawVerb `cmd:"" help:"End an approval that covers further calls."`
}

// approvalsDir returns the directory of the open questions.
func approvalsDir() (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	return store.Approvals(home), nil
}

type approvalsListVerb struct {
	verb.PeriodFlags `set:"dated=was asked"`

	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists open questions, oldest first.
func (v *approvalsListVerb) Run(s *verb.Streams) error {
	period, err := v.Period()
	if err != nil {
		return err
	}
	dir, err := approvalsDir()
	if err != nil {
		return err
	}
	open, err := approval.List(dir)
	if err != nil {
		return err
	}
	others, err := daemon.OtherQuestions()
	if err != nil {
		return err
	}
	if missing := listing.Missing(others.Unanswered); missing != "" {
		fmt.Fprintln(s.Err, "airlock: "+missing)
	}
	open = append(open, others.Questions...)
	open = slices.DeleteFunc(open, func(q approval.Posted) bool { return !period.Contains(q.Asked) })
	list := []listed{}
	if len(open) > 0 {
		suspended := verb.SuspendedRuns()
		for _, q := range open {
			list = append(list, listed{q, suspended[q.RunID]})
		}
	}
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"approvals": list})
	}
	switch {
	case len(list) == 0 && !period.IsZero():
		fmt.Fprintln(s.Err, "airlock: no call waits for a decision that was asked in this time")
	case len(list) == 0:
		fmt.Fprintln(s.Err, "airlock: no call waits for a decision")
	}
	for _, q := range list {
		if _, err := fmt.Fprintf(s.Out, "%s  %s  %s/%s  risk %s  for %s%s%s\n", q.ID, left(q.Expires),
			verb.OneLine(q.ServerID, 60), verb.OneLine(q.ToolName, 60), q.Risk, verb.OneLine(q.Principal, 60),
			q.suspension(), q.node()); err != nil {
			return err
		}
	}
	return nil
}

// listed is an open question with the state of its run.
type listed struct {
	approval.Posted
	Suspended string `json:"suspended_since,omitempty"` // since when the run is suspended; empty if it is not
}

// node describes the node of the cluster that asks.
func (q listed) node() string {
	if q.Node == "" {
		return ""
	}
	return "  at node " + verb.Clean(q.Node)
}

// suspension describes a run that is suspended.
func (q listed) suspension() string {
	if q.Suspended == "" {
		return ""
	}
	return fmt.Sprintf("  run %s suspended since %s", q.RunID, verb.ShortBegan(q.Suspended))
}

// left returns how long a question stays open.
func left(expires time.Time) string {
	return fmt.Sprintf("%v left", time.Until(expires).Round(time.Second))
}

// question is the argument that names an open question.
type question struct {
	ID string `arg:"" help:"The question, as approvals list names it."`
}

// find returns the question and its directory.
func (q question) find() (posted approval.Posted, dir string, err error) {
	if dir, err = approvalsDir(); err != nil {
		return posted, "", err
	}
	if posted, err = approval.Find(dir, q.ID); errors.Is(err, approval.ErrClosed) {
		posted, err = findElsewhere(q.ID, err)
	}
	if err != nil {
		return posted, "", verb.WithHint(err, "airlock approvals list", verb.ExitFailed)
	}
	return posted, dir, nil
}

// findElsewhere returns a question of another node of the cluster. If there is none, it returns closed.
func findElsewhere(id string, closed error) (approval.Posted, error) {
	others, err := daemon.OtherQuestions()
	if err != nil {
		return approval.Posted{}, err
	}
	i := slices.IndexFunc(others.Questions, func(q approval.Posted) bool { return q.ID == id })
	if i < 0 {
		return approval.Posted{}, closed
	}
	return others.Questions[i], nil
}

type approvalsShowVerb struct {
	question
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the whole question. It does not answer it.
func (v *approvalsShowVerb) Run(s *verb.Streams) error {
	q, _, err := v.find()
	if err != nil {
		return err
	}
	if v.JSON {
		return verb.PrintLine(s.Out, q)
	}
	return approval.Write(s.Out, q.Question)
}

type approvalsApproveVerb struct {
	question
	ForRun bool   `help:"Also every further call of the same tool by the same run."`
	For    string `placeholder:"WHAT" help:"Also further calls of the tool: run, session, or until a date (2026-12-24)."`
	Yes    bool   `short:"y" help:"Do not ask after showing the call. It still needs a person's terminal."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run shows the call and approves exactly the call that it has shown.
func (v *approvalsApproveVerb) Run(ctx context.Context, s *verb.Streams) error {
	q, dir, err := v.find()
	if err != nil {
		return err
	}
	extent, err := v.extent(q)
	if err != nil {
		return verb.Usage(err.Error(), "airlock approvals approve "+q.ID+" --for run")
	}
	if _, err := io.WriteString(s.Err, approval.Excerpt(q.Question, maxShown)); err != nil {
		return err
	}
	if !v.Yes {
		sure, err := confirm(ctx, extent)
		if err != nil {
			return err
		}
		if !sure {
			fmt.Fprintln(s.Err, "airlock: nothing was decided; the question stays open")
			return verb.ExitError(verb.ExitFailed)
		}
	}
	return reply(s, dir, q, approval.Decision{Approve: true, For: extent}, v.JSON)
}

// extent returns what the approval covers.
func (v *approvalsApproveVerb) extent(q approval.Posted) (extent approval.Extent, err error) {
	if extent, err = approval.ParseExtent(v.For, time.Now()); err != nil {
		return extent, err
	}
	if v.ForRun && extent.Reach < approval.ThisRun {
		extent.Reach = approval.ThisRun
	}
	return extent, q.Allows(extent)
}

// maxShown is the number of bytes of a question that are shown when a person is asked to
// answer it, because people do not read text that has scrolled off the screen.
const maxShown = 16 << 10

// confirm asks at the terminal whether to approve the call that was shown.
func confirm(ctx context.Context, extent approval.Extent) (bool, error) {
	what := "this call, once"
	if extent.Reach != approval.ThisCall {
		what = "this call and every further call of the tool " + extent.Describe()
	}
	return AgreesTo(ctx, "Approve "+what+"?")
}

// AgreesTo asks a question at the terminal.
func AgreesTo(ctx context.Context, question string) (bool, error) {
	at, err := verb.OpenTerminal()
	if err != nil {
		return false, needsTerminal(fmt.Errorf("approving asks at a terminal, and %w", err))
	}
	defer at.Close()
	if err := at.Begin(); err != nil {
		return false, err
	}
	fmt.Fprintf(at, "\n%s [y/n] ", question)
	key, err := at.Key(ctx, "yn")
	if err != nil {
		return false, fmt.Errorf("asking at the terminal: %w", err)
	}
	fmt.Fprintf(at, "%c\n", key)
	return key == 'y', nil
}

// needsTerminal adds the hint that names the ways to approve a call.
func needsTerminal(err error) error {
	return verb.WithHint(
		err, "approve in your own terminal, with `airlock approvals watch` or `airlock approvals "+
			"approve ID`, or in the host's dialogue", verb.ExitRefused)
}

// reply posts the answer and prints it. It returns an error if the answer is not accepted.
func reply(s *verb.Streams, dir string, q approval.Posted, by approval.Decision, asJSON bool) error {
	waits, err := approval.Reply(dir, q, by)
	if err != nil {
		return replyError(err)
	}
	word := "denied"
	if by.Approve {
		word = "approved"
	}
	if asJSON {
		line := map[string]any{"id": q.ID, "decision": word, "for_run": by.For.Reach == approval.ThisRun}
		if by.Approve {
			line["for"] = by.For.String()
		}
		if waits != "" {
			line["waits"] = waits
		}
		return verb.PrintLine(s.Out, line)
	}
	if _, err = fmt.Fprintf(s.Out, "%s %s\n", word, q.ID); err == nil && waits != "" {
		_, err = fmt.Fprintf(s.Err, "airlock: the question stays open: %s\n", waits)
	}
	return err
}

// replyError adds a hint to the error of an answer that was not accepted.
func replyError(err error) error {
	switch {
	case errors.Is(err, approval.ErrClosed):
		return verb.WithHint(err, "airlock approvals list", verb.ExitFailed)
	case errors.Is(err, approval.ErrOfHost):
		return verb.WithHint(err, "answer in the host's own dialogue, or in a terminal that neither the host nor what "+
			"started it has opened: another terminal program, a console, ssh", verb.ExitRefused)
	case errors.Is(err, approval.ErrNoTerminal):
		return needsTerminal(err)
	}
	return err
}

type approvalsDenyVerb struct {
	question
	Reason string `placeholder:"TEXT" help:"Why, for the model."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run shows the call and denies it.
func (v *approvalsDenyVerb) Run(s *verb.Streams) error {
	q, dir, err := v.find()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.Err, approval.Excerpt(q.Question, maxShown)); err != nil {
		return err
	}
	return reply(s, dir, q, approval.Decision{Reason: v.Reason}, v.JSON)
}
