// Package gateway is the face of the risk gateway: an MCP server with two tools,
// execute_python_code and verification_status. Each call is decided before it is executed,
// including calls of unknown tools.
package gateway

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/verify/gateway"
)

// Decider decides about calls: *gateway.Gateway. It is safe for concurrent use. If it returns an
// error, the call is denied.
type Decider interface {
	Decide(ctx context.Context, c gateway.Call) (gateway.Decision, error)
}

// Runs is the registry of runs: *runs.Registry. Its methods are safe for concurrent use.
type Runs interface {
	// NewID returns the ID of a new run.
	NewID() string
	// Start begins a run that outlives ctx, with the ID of the request.
	Start(ctx context.Context, req orchestrator.Request) (*runs.Run, error)
	// EndSession ends the runs of a session that has ended, and waits for them.
	EndSession(sessionID string)
}

// Jobs are runs in the background: *runs.Jobs. Its methods are safe for concurrent use. Each
// considers only the jobs of the given caller.
type Jobs interface {
	// Start queues a job and returns its ID. An error may have a method Hint() string
	// with a fix for the caller.
	Start(ctx context.Context, req orchestrator.Request) (string, error)
	// Get returns a job of the caller.
	Get(ctx context.Context, c caller.Caller, id string) (runs.JobStatus, bool)
	// Cancel ends a job of the caller.
	Cancel(c caller.Caller, id string) bool
	// EndSession ends the jobs of a session that has ended, and waits for them.
	EndSession(sessionID string)
}

// Parts are the parts of a face. All are required.
type Parts struct {
	Decider Decider
	Runs    Runs
	Jobs    Jobs
}

// Options are the options of New.
type Options struct {
	Version   string       // Airlock's own
	Principal string       // the owner of a host on stdio; required
	Local     server.Local // returns the caller on stdio; nil means the principal
	// BackgroundTimeout is the time limit of a job; 0 means DefaultBackground.
	BackgroundTimeout time.Duration
	Logger            *slog.Logger           // nil logs nothing
	Gate              server.Gate            // nil changes nothing
	Mark              func(id string) string // see server.SessionIDs; nil changes nothing
	// WhileKnown is server.Options.WhileKnown.
	WhileKnown func(ctx context.Context, who caller.Caller, ended func(error)) (stop func())
}

// Server is the face on its transport. A host cannot see or cancel the requests and jobs of
// another host.
type Server struct {
	*server.Transport
	parts      Parts
	background time.Duration
	logger     *slog.Logger
	locks      *sessionLocks

	mu         sync.Mutex                     // guards dispatched
	dispatched map[string]map[string]dispatch // session → request → its job
}

//go:embed tools.json
var toolsJSON []byte

//go:embed instructions.md
var instructions string

// New returns the face.
func New(parts Parts, opts Options) (*Server, error) {
	if parts.Decider == nil || parts.Runs == nil || parts.Jobs == nil || opts.Principal == "" {
		return nil, errors.New("the gateway face needs all its parts, and a principal")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.BackgroundTimeout == 0 {
		opts.BackgroundTimeout = DefaultBackground
	}
	s := &Server{
		parts: parts, background: opts.BackgroundTimeout, logger: opts.Logger, locks: newSessionLocks(),
		dispatched: map[string]map[string]dispatch{},
	}
	face := mcp.NewServer(
		&mcp.Implementation{Name: "qwed-verification", Title: "QWED verification by Airlock", Version: opts.Version},
		&mcp.ServerOptions{
			Instructions: strings.TrimSpace(instructions),
			Logger:       server.SDKLogger(opts.Logger),
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
			GetSessionID: server.SessionIDs(opts.Mark),
		})
	var tools []*mcp.Tool
	if err := strictjson.UnmarshalOpen(toolsJSON, &tools); err != nil {
		return nil, fmt.Errorf("reading tools.json: %w", err)
	}
	var names []string
	for _, tool := range tools {
		face.AddTool(tool, s.call)
		names = append(names, tool.Name)
	}
	face.AddReceivingMiddleware(s.everyCall)
	var err error
	s.Transport, err = server.New(face, server.Options{
		Principal: opts.Principal, Local: opts.Local, Logger: opts.Logger, Gate: opts.Gate,
		WhileKnown: opts.WhileKnown, EndSession: s.endSession, NameRequests: true, Tools: names,
	})
	return s, err
}

// endSession ends the work of a session that has ended.
func (s *Server) endSession(id string) {
	s.mu.Lock()
	delete(s.dispatched, id)
	s.mu.Unlock()
	s.parts.Jobs.EndSession(id)
	s.parts.Runs.EndSession(id)
	s.locks.forget(id)
}

// everyCall handles the calls of all tools, including unknown ones, and their cancellations.
func (s *Server) everyCall(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
			return s.call(ctx, call)
		}
		if cancelled, ok := req.GetParams().(*mcp.CancelledParams); ok {
			s.cancel(s.Caller(ctx, req), cancelled)
		}
		return next(ctx, method, req)
	}
}

// call decides about one call and executes it if it is allowed.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	who := s.Caller(ctx, req)
	if !who.Known() {
		return nil, server.ErrUnknownCaller
	}
	asked := gateway.Call{Caller: who, Tool: req.Params.Name, Arguments: req.Params.Arguments}
	if asked.Tool == gateway.ExecuteCode {
		asked.RunID = s.parts.Runs.NewID()
	}
	decision, err := s.parts.Decider.Decide(ctx, asked)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		s.logger.ErrorContext(ctx, "a call could not be decided", slog.String(telemetry.KeyTool, asked.Tool),
			slog.Any(telemetry.KeyError, err))
		return failed("the decision about the call could not be recorded, so nothing was done",
			"airlock doctor shows what is wrong with the audit log"), nil
	case !decision.Verified:
		return blocked(asked, decision), nil
	}
	s.Follow(req, who)
	var res *mcp.CallToolResult
	switch code, background := decision.Code(); {
	case asked.Tool == gateway.JobStatus:
		res = s.status(ctx, who, decision.JobID())
	case background:
		res = s.dispatch(ctx, who, s.request(req, who, asked.RunID, code, true), server.RequestID(req.Params.Meta))
	default:
		res = s.execute(ctx, who, s.request(req, who, asked.RunID, code, false))
	}
	if res.Meta == nil {
		res.Meta = mcp.Meta{}
	}
	res.Meta[verificationKey] = decision.VerificationID
	return res, nil
}

// Keys of the _meta of answers.
const (
	verificationKey = "io.github.airlock-mcp/verification_id"
	runKey          = "io.github.airlock-mcp/run_id"
)
