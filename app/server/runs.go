package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/runner"
)

// maxLog is how many bytes of a stream get_run shows: its end, where the
// interesting part of a failure is.
const maxLog = 16 << 10

// maxID is how many bytes of an unknown run's ID are repeated in an answer.
const maxID = 200

// started is what run_code answers for a run in the background.
type started struct {
	RunID string             `json:"run_id"`
	State orchestrator.State `json:"state"`
}

func (s *Server) runCode(ctx context.Context, c call) (*mcp.CallToolResult, error) {
	req := orchestrator.Request{
		Language: c.args.text("language", true),
		Code:     []byte(c.args.text("code", true)),
		Timeout:  seconds(c.args.positive("timeout_seconds")),
		Caller:   caller.Caller{Principal: s.principal, Kind: caller.Local, Session: c.session},
	}
	background := c.args.flag("background")
	if c.args.err != nil {
		return nil, c.args.err
	}
	s.follow(c.request.Session)
	asks := s.approvals != nil && canAsk(c.request)
	between := c.request.ProtocolVersion() >= stateless
	// Over HTTP a host is asked on the stream of its request, which a run in the
	// background has outlived.
	if asks && !between && (!background || c.request.Session.ID() == "") {
		s.attend(c.request, c.session)
	}
	switch {
	case background:
		return s.startRun(ctx, req)
	case asks && between:
		return s.runBetweenRequests(ctx, c, req)
	}
	defer s.reportProgress(ctx, c.request)()
	outcome, err := s.runs.Run(ctx, req)
	return s.finish(c.session, req, outcome, err)
}

func (s *Server) startRun(ctx context.Context, req orchestrator.Request) (*mcp.CallToolResult, error) {
	id, err := s.runs.Start(ctx, req)
	if err != nil {
		return nil, err
	}
	return structured(started{id, orchestrator.StateRunning}, "The run goes on in the background. Ask get_run for its outcome.")
}

// runBetweenRequests makes a run that may ask its host for input: the call then
// ends with the questions, and comes again with the answers.
func (s *Server) runBetweenRequests(ctx context.Context, c call, req orchestrator.Request) (*mcp.CallToolResult, error) {
	defer s.reportProgress(ctx, c.request)()
	var parked *parkedRun
	if state := c.request.Params.RequestState; state != "" {
		var err error
		if parked, err = s.parking.resume(state, req, c.request.Params.InputResponses); err != nil {
			return nil, err
		}
	} else {
		parked = s.parking.start(ctx, s.runs, req, s.answerer(c.request))
	}
	if asked, state := s.parking.await(ctx, parked); asked != nil {
		return &mcp.CallToolResult{InputRequests: asked, RequestState: state}, nil
	}
	return s.finish(c.session, req, parked.outcome, parked.err)
}

// finish answers with the outcome of a run of a session and keeps it for get_run.
// Where there was no room for the run, the answer is an envelope, too: it says
// that the same request may succeed later.
func (s *Server) finish(session string, req orchestrator.Request, outcome *orchestrator.Outcome, err error) (*mcp.CallToolResult, error) {
	if errors.Is(err, runner.ErrBusy) {
		const sentence = "all sandboxes are in use and the queue is full: run it again when another run has ended"
		return enveloped(orchestrator.Refused(req, s.version, orchestrator.TypeBusy, sentence))
	}
	if err != nil {
		return nil, err
	}
	s.recent.add(session, outcome)
	return enveloped(outcome.Envelope)
}

// seconds turns an argument into a duration: 0 stays 0, which means no wish of
// one's own; what is too small or too large for a duration becomes the nearest.
func seconds(n float64) time.Duration {
	switch {
	case n == 0:
		return 0
	case n >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	}
	return max(time.Duration(n*float64(time.Second)), 1)
}

// enveloped answers with an envelope. A program that failed is a failed call:
// hosts show those to the model as errors to repair.
func enveloped(envelope orchestrator.Envelope) (*mcp.CallToolResult, error) {
	res, err := structured(envelope)
	if err != nil {
		return nil, err
	}
	res.IsError = !envelope.Result.OK
	return res, nil
}

// shown is what get_run answers.
type shown struct {
	RunID    string                 `json:"run_id"`
	State    orchestrator.State     `json:"state"`
	Envelope *orchestrator.Envelope `json:"envelope,omitempty"`
	Stdout   string                 `json:"stdout,omitempty"`
	Stderr   string                 `json:"stderr,omitempty"`
}

// stateUnknown is the state of a run that is not there, or not any more.
const stateUnknown orchestrator.State = "unknown"

func (s *Server) getRun(_ context.Context, c call) (*mcp.CallToolResult, error) {
	id := c.args.text("run_id", true)
	if c.args.err != nil {
		return nil, c.args.err
	}
	status, ok := s.runs.Get(c.session, id)
	if !ok {
		if outcome := s.recent.get(c.session, id); outcome != nil {
			status, ok = orchestrator.Status{RunID: id, State: orchestrator.StateDone, Outcome: outcome}, true
		}
	}
	switch {
	case !ok:
		return structured(shown{RunID: truncate.Head(id, maxID), State: stateUnknown}, "There is no such run in this session, or it is no longer kept.")
	case status.Err != nil:
		return nil, fmt.Errorf("the run %s could not be started: %w", quote(id), status.Err)
	case status.Outcome == nil:
		return structured(shown{RunID: id, State: status.State})
	}
	return structured(shown{
		RunID: id, State: status.State, Envelope: &status.Outcome.Envelope,
		Stdout: tail(status.Outcome.Stdout, maxLog), Stderr: tail(status.Outcome.Stderr, maxLog),
	})
}

// stopped is what cancel_run answers.
type stopped struct {
	RunID     string `json:"run_id"`
	Cancelled bool   `json:"cancelled"`
}

func (s *Server) cancelRun(_ context.Context, c call) (*mcp.CallToolResult, error) {
	id := c.args.text("run_id", true)
	if c.args.err != nil {
		return nil, c.args.err
	}
	answer := stopped{truncate.Head(id, maxID), s.runs.Cancel(c.session, id)}
	if !answer.Cancelled {
		return structured(answer, "There is no run of that ID that is still going.")
	}
	return structured(answer)
}
