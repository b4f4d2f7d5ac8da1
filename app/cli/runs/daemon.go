package runs

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/approvals"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/fastpath"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/tty"
)

// errEnding means that the daemon is shutting down and has not run the program.
var errEnding = errors.New("the daemon is ending")

// sendThere makes the run in a daemon, and prints the outcome as alone does.
func (v *Run) sendThere(ctx context.Context, s *verb.Streams, conn *join.Conn, request orchestrator.Request) error {
	return v.runThere(s, request, func(here *here) (*join.RunOutcome, error) {
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
	return v.runThere(s, request, func(here *here) (*join.RunOutcome,
		error) {
		return daemon.Finish(ctx, sent.Conn, here)
	})
}

// runThere calls wait for the outcome of a run and prints it.
func (v *Run) runThere(s *verb.Streams, request orchestrator.Request,
	wait func(*here) (*join.RunOutcome, error)) error {
	here := &here{notice: verb.Notices(s.Err), err: s.Err}
	here.line = verb.StartProgress(s, here.doing)
	if at, err := verb.OpenTerminal(); err == nil {
		defer at.Close()
		here.Person = &approvals.Person{At: at, Line: here.line}
	}
	outcome, err := wait(here)
	here.line.Stop()
	var refused *join.RunRefusal
	switch {
	case errors.As(err, &refused) && refused.Ending:
		return errEnding
	case errors.As(err, &refused) && refused.Usage:
		return v.refuse(s, request, refused.Kind, verb.Usage(refused.Problem, refused.Advice))
	case errors.As(err, &refused):
		return v.refuse(s, request, refused.Kind, refused)
	case err != nil:
		return v.refuse(s, request, errortype.Sandbox, err)
	}
	return v.printRun(s, outcome)
}

// here is the client's side of a run that a daemon makes.
type here struct {
	*approvals.Person // nil without a terminal
	notice            func(upstreams.Notice)
	err               io.Writer
	line              *verb.ProgressLine
	progress          atomic.Pointer[string] // nil before the first message about it
}

var _ daemon.RunHere = (*here)(nil)

// doing returns the text of the progress line.
func (h *here) doing() string {
	if text := h.progress.Load(); text != nil {
		return running(*text)
	}
	return "waiting for the daemon"
}

// Progress implements daemon.RunHere.
func (h *here) Progress(text string) { h.progress.Store(&text) }

// Notice implements daemon.RunHere.
func (h *here) Notice(n upstreams.Notice) {
	h.line.Hide()
	defer h.line.Show()
	h.notice(n)
}

// Waits implements daemon.RunHere.
func (h *here) Waits(q approval.Question) {
	h.line.Hide()
	defer h.line.Show()
	approvals.TellWaits(h.err, q)
}

// Ask implements approval.Asker.
func (h *here) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	if h.Person == nil {
		return approval.Verdict{}, tty.ErrNone
	}
	return h.Person.Ask(ctx, q)
}
