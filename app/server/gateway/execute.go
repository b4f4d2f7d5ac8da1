package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// The limits of programs.
const (
	Timeout           = 30 * time.Second  // of a synchronous program
	DefaultBackground = 120 * time.Second // the default for a job
	MaxBackground     = 600 * time.Second // the maximum that an administrator can set
	maxStream         = orchestrator.ScriptStream
)

// execute runs a program and answers with its outcome. The programs of one session run one
// after the other.
func (s *Server) execute(ctx context.Context, who caller.Caller, req orchestrator.Request) *mcp.CallToolResult {
	runID := req.ID
	unlock, err := s.locks.lock(ctx, who.Session)
	if err != nil {
		return s.noRun(ctx, runID, err)
	}
	defer unlock()
	run, err := s.parts.Runs.Start(ctx, req)
	if err != nil {
		return s.noRun(ctx, runID, err)
	}
	outcome, err := run.Wait(ctx)
	if err != nil {
		return s.noRun(ctx, runID, err)
	}
	res := result(synchronousText(outcome)...)
	res.IsError = outcome.End != orchestrator.End{}
	res.Meta = mcp.Meta{runKey: runID}
	return res
}

// dispatch queues a program as a job and answers at once.
func (s *Server) dispatch(ctx context.Context, who caller.Caller, req orchestrator.Request,
	requestID string) *mcp.CallToolResult {
	id, err := s.parts.Jobs.Start(ctx, req)
	if err != nil {
		return s.noRun(ctx, req.ID, err)
	}
	if ctx.Err() != nil { // the request was cancelled
		s.parts.Jobs.Cancel(who, id)
	}
	s.remember(who, requestID, id)
	res := result("Verification order is being placed for the request " + id +
		". Check back using the 'verification_status' tool.")
	res.Meta = mcp.Meta{runKey: req.ID, "io.github.airlock-mcp/job_id": id}
	return res
}

// request returns the request for the run of a program.
func (s *Server) request(call *mcp.CallToolRequest, who caller.Caller, runID, code string,
	background bool) orchestrator.Request {
	timeout := Timeout
	if background {
		timeout = s.background
	}
	req := orchestrator.ScriptRequest(code, orchestrator.Script{Timeout: timeout, Stream: maxStream})
	req.ID, req.Caller, req.Background = runID, who, background
	req.Model = server.AnnouncedModel(call)
	return req
}

// noRun answers if a program could not be run.
func (s *Server) noRun(ctx context.Context, runID string, err error) *mcp.CallToolResult {
	problem, hint := whyNoRun(err)
	if hint == "" {
		s.logger.ErrorContext(ctx, "a program could not be run", slog.String(telemetry.KeyRun, runID),
			slog.Any(telemetry.KeyError, err))
	}
	return failed(problem, hint)
}

// whyNoRun returns one sentence with the reason why a program was not run, and a hint. If the
// caller cannot correct the cause, the hint is empty and the cause is only logged.
func whyNoRun(err error) (problem, hint string) {
	var advised interface{ Hint() string }
	switch {
	case errors.Is(err, runner.ErrBusy):
		return "all sandboxes are in use and the queue is full", "call it again when another run has ended"
	case errors.Is(err, context.Canceled), errors.Is(err, runs.ErrCancelled):
		return "the call was cancelled before the program had begun", "call it again"
	case errors.Is(err, runs.ErrClosed):
		return "the server is ending", "call it again when it has been started again"
	case errors.As(err, &advised):
		return err.Error(), advised.Hint()
	}
	return "the program could not be run; its run's ID leads to the cause in the server's log", ""
}

// sessionLocks limits each session to one program at a time.
type sessionLocks struct {
	mu  sync.Mutex
	all map[string]chan struct{} // by session; holds a value while a program runs
}

func newSessionLocks() *sessionLocks { return &sessionLocks{all: map[string]chan struct{}{}} }

// lock waits until no program of the session runs. The caller must call unlock.
func (l *sessionLocks) lock(ctx context.Context, session string) (unlock func(), _ error) {
	l.mu.Lock()
	held := l.all[session]
	if held == nil {
		held = make(chan struct{}, 1)
		l.all[session] = held
	}
	l.mu.Unlock()
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *sessionLocks) forget(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, session)
}
