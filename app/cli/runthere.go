package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/internal/errortype"
)

// errEnding says that a daemon has not run the program, because it is about to end.
var errEnding = errors.New("the daemon is ending")

// runThere has a daemon make the run, and prints what came of it as alone does.
func runThere(ctx context.Context, s *streams, conn *daemon.Conn, request orchestrator.Request) error {
	here := &here{notice: notices(s.err), err: s.err}
	if at, err := openTerminal(); err == nil {
		defer at.close()
		here.person = &person{at: at}
	}
	done := progress(s, "waiting for the daemon")
	outcome, err := conn.Run(ctx, daemon.RunRequest{
		Language: request.Language, Code: request.Code, Timeout: request.Timeout, Terminal: here.person != nil,
	}, here)
	done()
	var refused *daemon.RunRefusal
	switch {
	case errors.As(err, &refused) && refused.Ending:
		return errEnding
	case errors.As(err, &refused) && refused.Usage:
		return refuse(s, request, refused.Kind, &usageError{refused.Problem, refused.Advice})
	case errors.As(err, &refused):
		return refuse(s, request, refused.Kind, refused)
	case err != nil:
		return refuse(s, request, errortype.Sandbox, err)
	}
	envelope, err := outcome.Envelope()
	if err != nil {
		return fmt.Errorf("reading the daemon's envelope: %w", err)
	}
	return printRun(s, outcome.Stdout+outcome.Stderr, outcome.Line, envelope.Result.Error)
}

// here is the client's side of a run that a daemon makes.
type here struct {
	*person // nil where there is no terminal
	notice  func(system.Notice)
	err     io.Writer
}

var _ daemon.RunHere = (*here)(nil)

// Notice implements daemon.RunHere.
func (h *here) Notice(n system.Notice) { h.notice(n) }

// Waits implements daemon.RunHere.
func (h *here) Waits(q approval.Question) { tellWaits(h.err, q) }

// Ask implements approval.Asker.
func (h *here) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	if h.person == nil {
		return approval.Verdict{}, errNoTerminal
	}
	return h.person.Ask(ctx, q)
}
