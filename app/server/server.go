// Package server is the face that Airlock shows to agent hosts: an MCP server
// with five tools, whatever number of tools stands behind it. It is the only
// user of go-sdk's server side.
//
// It speaks the protocol's 2026-07-28 revision and, by negotiation, those from
// 2024-11-05 to 2025-11-25, over stdio and over streamable HTTP.
package server

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Tools is where the definitions behind search_tools come from.
type Tools interface {
	// Snapshot returns the newest definitions. It may be called concurrently;
	// what it returns never changes.
	Snapshot() *catalog.Snapshot
}

// Runs is what run_code and its kin stand for. All methods may be called
// concurrently.
type Runs interface {
	// Run makes one run and waits for its outcome; cancelling ctx ends it. An
	// error means that there was no run. One with a method Hint() string tells
	// the caller what to do instead.
	Run(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error)
	// Start begins a run that outlives ctx and returns its ID. Errors are as of Run.
	Start(ctx context.Context, req orchestrator.Request) (runID string, err error)
	// Get returns a run that Start began in the same session.
	Get(sessionID, runID string) (orchestrator.Status, bool)
	// Cancel ends such a run. It reports whether it was still going; calling it
	// twice is fine.
	Cancel(sessionID, runID string) bool
	// EndSession says that a session is over and makes no more runs. Calling it
	// twice is fine.
	EndSession(sessionID string)
}

// Options say who is served and how.
type Options struct {
	Version   string       // Airlock's own
	Principal string       // who the sessions belong to; needed
	ServerIDs []string     // the upstream servers, named in the instructions
	Approvals Approvals    // nil: people are not asked through the host
	Logger    *slog.Logger // nil logs nothing
}

// Server serves any number of sessions at one time.
type Server struct {
	tools     Tools
	runs      Runs
	version   string // Airlock's own
	principal string
	logger    *slog.Logger
	mcp       *mcp.Server
	order     []string // the tools' names as they are listed
	// session is the ID of every session whose transport gives it none: a
	// stdio session, and requests of the revision 2026-07-28, which has none.
	session string
	recent  recent
	parking *parking // nil without approvals

	approvals Approvals // nil: people are not asked through the host
	watching  sync.WaitGroup
	mu        sync.Mutex
	attended  map[*mcp.ServerSession]bool // those whose host is asked
	followed  map[*mcp.ServerSession]bool // those that have made runs, and have an ID of their own
}

//go:embed tools.json
var toolsJSON []byte

// New returns a server for the given tools and runs.
func New(tools Tools, runs Runs, opts Options) (*Server, error) {
	if tools == nil || runs == nil || opts.Principal == "" {
		return nil, errors.New("a server needs tools, runs and a principal")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		tools: tools, runs: runs, version: opts.Version, principal: opts.Principal, logger: opts.Logger, session: telemetry.NewID("ses"),
		approvals: opts.Approvals, attended: map[*mcp.ServerSession]bool{}, followed: map[*mcp.ServerSession]bool{},
	}
	if opts.Approvals != nil {
		s.parking = newParking(opts.Approvals, s.session)
	}
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "airlock", Title: "Airlock", Version: opts.Version},
		&mcp.ServerOptions{
			Instructions: instructions(opts.ServerIDs),
			Logger:       slog.New(quiet{opts.Logger.Handler()}),
			// The five tools and the prompt never change, so no list_changed is promised.
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{}},
		})
	if err := s.addTools(); err != nil {
		return nil, err
	}
	s.addPrompt()
	s.mcp.AddReceivingMiddleware(s.listInOrder)
	return s, nil
}

// Close ends the runs that wait for their host to come back with a person's
// answer, and waits until every session has been left. Call it when all of them
// have ended; calling it twice is fine.
func (s *Server) Close() {
	s.endParked()
	s.watching.Wait()
	s.runs.EndSession(s.session)
}

func (s *Server) endParked() {
	if s.parking != nil {
		s.parking.end()
	}
}

// handler answers one tool call. A *refusal among its errors becomes a result
// with isError set, every other error one that names no cause.
type handler func(ctx context.Context, call call) (*mcp.CallToolResult, error)

// call is one tools/call as handlers see it.
type call struct {
	args    *arguments
	session string // the host's conversation
	request *mcp.CallToolRequest
}

// addTools registers the tools of tools.json.
func (s *Server) addTools() error {
	var tools []*mcp.Tool
	if err := json.Unmarshal(toolsJSON, &tools); err != nil {
		return fmt.Errorf("reading tools.json: %w", err)
	}
	handlers := map[string]handler{
		"search_tools":        s.searchTools,
		"get_tool_definition": s.getToolDefinition,
		"run_code":            s.runCode,
		"get_run":             s.getRun,
		"cancel_run":          s.cancelRun,
	}
	for _, tool := range tools {
		handle, ok := handlers[tool.Name]
		if !ok {
			return fmt.Errorf("tools.json defines %q, which nothing handles", tool.Name)
		}
		s.order = append(s.order, tool.Name)
		s.mcp.AddTool(tool, s.adapt(handle, parameters(tool)))
	}
	return nil
}

// parameters returns the names of a tool's arguments, for hints.
func parameters(tool *mcp.Tool) []string {
	schema, _ := tool.InputSchema.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// adapt makes a handler of the SDK's kind. Wrong arguments and refused runs are
// results, not protocol errors, so that the model sees them (MCP 2025-11-25,
// Tools, Error Handling).
func (s *Server) adapt(handle handler, known []string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		args, err := parseArguments(req.Params.Arguments, known)
		if err != nil {
			return refused(err), nil
		}
		res, err := handle(ctx, call{args: args, session: s.sessionID(req.Session), request: req})
		if err == nil {
			return res, nil
		}
		var advised interface{ Hint() string }
		if !errors.As(err, &advised) && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "a tool of Airlock's own failed",
				slog.String(telemetry.KeyTool, req.Params.Name), slog.Any(telemetry.KeyError, err))
		}
		return refused(err), nil
	}
}

// listInOrder puts tools/list into the order of tools.json: the SDK sorts by name.
func (s *Server) listInOrder(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if list, ok := res.(*mcp.ListToolsResult); ok && err == nil {
			slices.SortFunc(list.Tools, func(a, b *mcp.Tool) int {
				return slices.Index(s.order, a.Name) - slices.Index(s.order, b.Name)
			})
		}
		return res, err
	}
}

//go:embed instructions.md
var instructionsText string

// maxInstructions is how many characters of instructions every host shows its model.
const maxInstructions = 2048

// instructions teach search, read, write code, and name the servers as far as
// there is room.
func instructions(serverIDs []string) string {
	text := strings.TrimSpace(instructionsText)
	if len(serverIDs) == 0 {
		return text
	}
	const more = ", …"
	names := "\nServers: " + serverIDs[0]
	if len(text)+len(names)+len(more) > maxInstructions {
		return text
	}
	for _, id := range serverIDs[1:] {
		if len(text)+len(names)+len(", "+id)+len(more) > maxInstructions {
			return text + names + more
		}
		names += ", " + id
	}
	return text + names
}
