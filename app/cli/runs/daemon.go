package runs

import (
	"context"
	"errors"
	"io"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/approvals"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/fastpath"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/tty"
)

// errEnding means that the daemon is shutting down and has not run the program.
var errEnding = errors.New("the daemon is ending")

// sendThere makes the run in a daemon, and prints the outcome as alone does.
func sendThere(ctx context.Context, s *verb.Streams, conn *join.Conn, request orchestrator.Request) error {
	return runThere(s, request, func(here *here) (*join.RunOutcome, error) {
		return daemon.Run(ctx, conn, join.RunRequest{
			Language: request.Language, Code: request.Code, Timeout: request.Timeout, Terminal: here.Person != nil,
			Network: request.Network,
		}, here)
	})
}

// finish prints the outcome of a run that the fast path has sent to a daemon. The fast path has
// checked the file and the configuration.
func (v *Run) finish(ctx context.Context, s *verb.Streams, sent *fastpath.Run) error {
	v.Hold() // the output may contain a credential
	request := orchestrator.Request{Language: sent.Request.Language, Code: sent.Request.Code,
		Caller: verb.LocalCaller()}
	return runThere(s, request, func(here *here) (*join.RunOutcome,
		error) {
		return daemon.Finish(ctx, sent.Conn, here)
	})
}

// runThere calls wait for the outcome of a run and prints it.
func runThere(s *verb.Streams, request orchestrator.Request, wait func(*here) (*join.RunOutcome, error)) error {
	here := &here{notice: verb.Notices(s.Err), err: s.Err}
	if at, err := verb.OpenTerminal(); err == nil {
		defer at.Close()
		here.Person = &approvals.Person{At: at}
	}
	done := verb.Progress(s, "waiting for the daemon")
	outcome, err := wait(here)
	done()
	var refused *join.RunRefusal
	switch {
	case errors.As(err, &refused) && refused.Ending:
		return errEnding
	case errors.As(err, &refused) && refused.Usage:
		return refuse(s, request, refused.Kind, verb.Usage(refused.Problem, refused.Advice))
	case errors.As(err, &refused):
		return refuse(s, request, refused.Kind, refused)
	case err != nil:
		return refuse(s, request, errortype.Sandbox, err)
	}
	return printRun(s, outcome)
}

// here is the client's side of a run that a daemon makes.
type here struct {
	*approvals.Person // nil without a terminal
	notice            func(system.Notice)
	err               io.Writer
}

var _ daemon.RunHere = (*here)(nil)

// Notice implements daemon.RunHere.
func (h *here) Notice(n system.Notice) { h.notice(n) }

// Waits implements daemon.RunHere.
func (h *here) Waits(q approval.Question) { approvals.TellWaits(h.err, q) }

// Ask implements approval.Asker.
func (h *here) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	if h.Person == nil {
		return approval.Verdict{}, tty.ErrNone
	}
	return h.Person.Ask(ctx, q)
}
