package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/internal/store"
)

type approvalsVerbs struct {
	List    approvalsListVerb    `cmd:"" help:"List the calls that wait for a decision."`
	Show    approvalsShowVerb    `cmd:"" help:"Show a waiting call in full, and decide nothing."`
	Approve approvalsApproveVerb `cmd:"" help:"Let a waiting call happen, once."`
	Deny    approvalsDenyVerb    `cmd:"" help:"Refuse a waiting call."`
	Watch   approvalsWatchVerb   `cmd:"" help:"Show each call that waits, and keep runs waiting meanwhile."`
}

// approvalsDir is where open questions lie.
func approvalsDir() (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	return store.Approvals(home), nil
}

type approvalsListVerb struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists open questions, oldest first.
func (v *approvalsListVerb) Run(s *streams) error {
	dir, err := approvalsDir()
	if err != nil {
		return err
	}
	open, err := approval.List(dir)
	if err != nil {
		return err
	}
	if v.JSON {
		return printLine(s.out, map[string]any{"approvals": open})
	}
	for _, q := range open {
		if _, err := fmt.Fprintf(s.out, "%s  %s  %s/%s  risk %s  for %s\n", q.ID, left(q.Expires),
			oneLine(q.ServerID, 60), oneLine(q.ToolName, 60), q.Risk, oneLine(q.Principal, 60)); err != nil {
			return err
		}
	}
	return nil
}

// left says how long a question stays open.
func left(expires time.Time) string {
	return fmt.Sprintf("%v left", time.Until(expires).Round(time.Second))
}

// question names one that is open.
type question struct {
	ID string `arg:"" help:"The question, as approvals list names it."`
}

// find returns it, and the directory that it lies in.
func (q question) find() (posted approval.Posted, dir string, err error) {
	if dir, err = approvalsDir(); err != nil {
		return posted, "", err
	}
	if posted, err = approval.Find(dir, q.ID); err != nil {
		return posted, "", &hinted{err, "airlock approvals list", ExitFailed}
	}
	return posted, dir, nil
}

type approvalsShowVerb struct{ question }

// Run prints what approve and deny would print, and leaves the question open.
func (v *approvalsShowVerb) Run(s *streams) error {
	q, _, err := v.find()
	if err != nil {
		return err
	}
	return approval.Write(s.out, q.Question)
}

// decision is what approve and deny share.
type decision struct{ question }

func (d decision) reply(s *streams, approve, forRun bool) error {
	q, dir, err := d.find()
	if err != nil {
		return err
	}
	if err := approval.Write(s.err, q.Question); err != nil {
		return err
	}
	err = approval.Reply(dir, q, approve, system.Principal()+", command line", forRun)
	switch {
	case errors.Is(err, approval.ErrClosed):
		return &hinted{err, "airlock approvals list", ExitFailed}
	case errors.Is(err, approval.ErrOfHost):
		return &hinted{err, "answer in the host's own dialogue, or in a terminal that the host did not start", ExitRefused}
	}
	if err != nil {
		return err
	}
	word := "denied"
	if approve {
		word = "approved"
	}
	_, err = fmt.Fprintf(s.out, "%s %s\n", word, q.ID)
	return err
}

type approvalsApproveVerb struct {
	decision
	ForRun bool `help:"Also every further call of the same tool by the same run."`
}

// Run approves exactly what it prints.
func (v *approvalsApproveVerb) Run(s *streams) error { return v.reply(s, true, v.ForRun) }

type approvalsDenyVerb struct{ decision }

// Run denies one call.
func (v *approvalsDenyVerb) Run(s *streams) error { return v.reply(s, false, false) }

type approvalsWatchVerb struct{}

// Run prints each question as it opens, until interrupted.
func (v *approvalsWatchVerb) Run(ctx context.Context, s *streams) error {
	dir, err := approvalsDir()
	if err != nil {
		return err
	}
	return approval.Watch(ctx, dir, func(q approval.Posted) error {
		if err := approval.Write(s.out, q.Question); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.out, "airlock approvals approve %s   or   airlock approvals deny %s\n\n", q.ID, q.ID)
		return err
	})
}
