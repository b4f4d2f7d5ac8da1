package code

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/runner"
)

// maxID is the maximum length of an unknown run ID in an answer, in bytes.
const maxID = 200

// runCode runs a program.
func (s *Server) runCode(ctx context.Context, c call) (*mcp.CallToolResult, error) {
	req, err := runRequest(c)
	if err != nil {
		return nil, err
	}
	return s.makeRun(ctx, c, req)
}

// makeRun makes a run and answers with its outcome. For a run in the background it answers at
// once. If the host can be asked between requests, it answers in several rounds. In all other
// cases it answers when the run is done.
func (s *Server) makeRun(ctx context.Context, c call, req orchestrator.Request) (*mcp.CallToolResult, error) {
	req.Model = server.AnnouncedModel(c.request)
	s.Follow(c.request, c.caller)
	if c.caller.Kind == caller.Agent {
		req.Context = stepContext(c.request)
	}
	told, end := s.listen(ctx, c.request, &req)
	defer end()
	asks := s.hostAsks(c.caller.Kind, c.request)
	between := c.request.ProtocolVersion() >= server.Stateless
	switch {
	case hasTasks(c.request.ProtocolVersion(), c.request.ClientCapabilities()):
		return s.runAsTask(ctx, c, req, told)
	case asks && between && !req.Background:
		return s.runBetweenRequests(ctx, c, req, told)
	// Over HTTP a host is asked on the stream of its request. A run in the background outlives
	// that stream.
	case asks && !between && (!req.Background || !server.IsHTTP(c.request)):
		s.attend(c)
	}
	run, err := s.runs.Start(ctx, req)
	if err != nil {
		return nil, err
	}
	if req.Background {
		return started(run)
	}
	defer s.reportProgress(ctx, c.request, run, told)()
	return s.finish(ctx, c, req, run)
}

// contextKey is the key of the step context in the _meta of an agent's request. The value has
// the format of the context of an announced action (docs/agents.md).
const contextKey = "io.github.airlock-mcp/context"

// stepContext returns the step context of a request, or nil.
func stepContext(req *mcp.CallToolRequest) json.RawMessage {
	said, there := req.Params.Meta[contextKey]
	if !there {
		return nil
	}
	raw, err := json.Marshal(said)
	if err != nil {
		return json.RawMessage("null") // which is not a valid context and is refused later
	}
	return raw
}

// runRequest reads the arguments of run_code.
func runRequest(c call) (orchestrator.Request, error) {
	said, code := c.args.text("language", false), c.args.text("code", true)
	req := orchestrator.Request{
		Language:   languageOf(language(said), code),
		Code:       []byte(code),
		Timeout:    seconds(c.args.positive("timeout_seconds")),
		Background: c.args.flag("background"),
		Caller:     c.caller,
		Network:    c.args.texts("network"),

		PreviewLarge: true,
	}
	switch hint := hintForLanguage(req.Language); {
	case c.args.err != nil:
		return req, c.args.err
	case req.Language == "":
		return req, &refusal{`the argument "language" is missing or empty`, `say "python" or "node"`}
	case hint != "":
		return req, &refusal{fmt.Sprintf("the language %s does not run here", quote(req.Language)), hint}
	}
	return req, nil
}

// runBetweenRequests makes a run that may ask its host for input. The call then ends with the
// questions, and the host repeats it with the answers.
func (s *Server) runBetweenRequests(ctx context.Context, c call, req orchestrator.Request,
	told *notices) (*mcp.CallToolResult, error) {
	var parked *parkedRun
	var err error
	if state := c.request.Params.RequestState; state != "" {
		parked, err = s.parking.resume(state, req, c.request.Params.InputResponses)
	} else {
		parked, err = s.parking.start(ctx, req, answering{answerer(c), opensURLs(c.request)})
	}
	if err != nil {
		return nil, err
	}
	defer s.reportProgress(ctx, c.request, parked.Run, told)()
	if asked, state := s.parking.await(ctx, parked); asked != nil {
		return &mcp.CallToolResult{InputRequests: asked, RequestState: state}, nil
	}
	res, err := s.finish(ctx, c, req, parked.Run)
	if err != nil {
		return nil, err
	}
	for _, id := range s.parking.tooLate(parked) {
		addText(res, "The answer to question "+id+
			" came too late and does not count: it was answered elsewhere, or had expired, before.")
	}
	return res, nil
}

// finish waits for the outcome of a run and answers with it. If a limit of sandboxes or sessions
// is reached, the answer is also an outcome, with a note that the same request may succeed
// later.
func (s *Server) finish(ctx context.Context, c call, req orchestrator.Request, run *runs.Run) (*mcp.CallToolResult,
	error) {
	if !s.hostAsks(c.caller.Kind, c.request) {
		if status, waits := waitsDurably(ctx, run); waits {
			return pending(status)
		}
	}
	outcome, err := run.Wait(ctx)
	req.ID = run.ID()
	switch {
	case errors.Is(err, runner.ErrBusy):
		return s.busy(ctx, c, req,
			"all sandboxes are in use and the queue is full: run it again when another run has ended")
	case errors.Is(err, broker.ErrSessions):
		return s.busy(ctx, c, req, "too many sessions are open: run it again when another has ended")
	case err != nil:
		return nil, err
	}
	return s.finished(ctx, outcome, c.request.ProtocolVersion())
}

// waitsDurably waits until the run is done, ctx ends, or the run waits for a person so that it survives its request and
// Airlock. In the last case it returns true and the status of the run.
func waitsDurably(ctx context.Context, run *runs.Run) (runs.Status, bool) {
	changed, stop := run.Subscribe()
	defer stop()
	for {
		status := run.Status()
		if status.State == runs.Done || status.Durable && len(status.Questions) > 0 {
			return status, status.State != runs.Done
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return status, false
		}
	}
}

func (s *Server) busy(ctx context.Context, c call, req orchestrator.Request, sentence string) (*mcp.CallToolResult,
	error) {
	refused := &orchestrator.Outcome{Envelope: orchestrator.Refused(req, s.version, errortype.RateLimit, sentence)}
	return s.finished(ctx, refused, c.request.ProtocolVersion())
}

// seconds converts an argument to a duration. 0 means the default. Numbers that are too small or
// too large for a duration are converted to the nearest one.
func seconds(n float64) time.Duration {
	switch {
	case n == 0:
		return 0
	case n >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	}
	return max(time.Duration(n*float64(time.Second)), 1)
}

func (s *Server) getRun(ctx context.Context, c call) (*mcp.CallToolResult, error) {
	id := c.args.text("run_id", true)
	if c.args.err != nil {
		return nil, c.args.err
	}
	run, ok := s.runs.Get(c.caller, id)
	if !ok {
		return structured(shown{RunID: truncate.Head(id, maxID), State: stateUnknown},
			"There is no such run in this session, or it is no longer kept.")
	}
	status := run.Status()
	if status.Err != nil {
		return nil, notStarted(id, status.Err)
	}
	return s.show(ctx, status, run.Printed(), time.Now(), c.request)
}

// notStarted returns the error for a run that could not be started.
func notStarted(id string, err error) error {
	sentence := fmt.Sprintf("the run %s could not be started: %v", quote(id), err)
	switch {
	case errors.Is(err, runner.ErrBusy), errors.Is(err, broker.ErrSessions):
		return &refusal{sentence, "run it again when another run has ended"}
	case errors.Is(err, runs.ErrCancelled):
		return &refusal{problem: sentence}
	}
	return fmt.Errorf("the run %s could not be started: %w", quote(id), err)
}

// stopped is the answer of cancel_run.
type stopped struct {
	RunID     string `json:"run_id"`
	Cancelled bool   `json:"cancelled"`
}

func (s *Server) cancelRun(_ context.Context, c call) (*mcp.CallToolResult, error) {
	id := c.args.text("run_id", true)
	if c.args.err != nil {
		return nil, c.args.err
	}
	answer := stopped{truncate.Head(id, maxID), s.runs.Cancel(c.caller, id)}
	if !answer.Cancelled {
		return structured(answer, "There is no run of that ID that is still going.")
	}
	return structured(answer)
}
