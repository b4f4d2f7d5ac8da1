// Package code is the face for agents that write code: an MCP server with five or six
// tools, independent of the number of tools of the connected servers.
package code

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Tools provides the definitions for search_tools.
type Tools interface {
	// Snapshot returns the newest definitions that the caller may see. It is safe for
	// concurrent use. The result never changes.
	Snapshot(who caller.Caller) *catalog.Snapshot
	// Await waits until each of the servers has answered or failed since Airlock started,
	// and the snapshot includes the result. It returns an error if ctx ends first.
	Await(ctx context.Context, serverIDs ...string) error
}

// Runs is the registry of runs behind run_code, get_run and cancel_run: *runs.Registry. Its
// methods may be called concurrently; each answers for the given caller alone.
type Runs interface {
	// Start begins a run that outlives ctx. If the request is invalid, it returns an error,
	// which may have a method Hint() string with a fix for the caller.
	Start(ctx context.Context, req orchestrator.Request) (*runs.Run, error)
	// Get returns a run of the caller.
	Get(c caller.Caller, runID string) (*runs.Run, bool)
	// Cancel ends a run of the caller. It reports whether the run was still going.
	Cancel(c caller.Caller, runID string) bool
	// EndSession ends the runs of a session that has ended, and waits for them.
	EndSession(sessionID string)
}

// Options are the options of New.
type Options struct {
	Version   string          // Airlock's own
	Principal string          // the owner of a host on stdio; required
	Profile   string          // limits the servers and tools of a host on stdio; empty for all
	Local     server.Local    // returns the caller on stdio; nil means the principal
	ServerIDs func() []string // the upstream servers, named in the instructions; nil names none
	Packages  Packages        // named to the model as installed
	Approvals Approvals       // nil: people are not asked through the host
	Logger    *slog.Logger    // nil logs nothing
	Gate      server.Gate     // nil changes nothing
	// WhileKnown is server.Options.WhileKnown.
	WhileKnown func(ctx context.Context, who caller.Caller, ended func(error)) (stop func())
	Files      Files // nil: no run attaches anything
	CallTool   bool  // offer call_tool, for one call without code
	// Network lists the hosts that code may ask for, as NAME:PORT. If it is empty, run_code has no argument for them.
	Network []string
	Similar Similar // nil searches by words alone
	Changes Changes // nil: lists do not change, and there are no subscriptions
	// Mark changes an ID so that it names this process; nil changes nothing.
	Mark func(id string) string
	// SessionKey is server.Options.SessionKey.
	SessionKey []byte
}

// Similar returns the tools of a snapshot that are similar to a question in meaning. If the
// search fails, it returns a sentence for the model. It is safe for concurrent use, and waits
// no longer than its configured time limit.
type Similar func(ctx context.Context, snapshot *catalog.Snapshot, question string) ([]catalog.Similar, string)

// Server is the face on its transport. A host cannot see, answer or cancel the requests and runs
// of another host.
type Server struct {
	*server.Transport
	tools    Tools
	runs     Runs
	version  string // Airlock's own
	logger   *slog.Logger
	files    Files
	similar  Similar // nil searches by words alone
	mcp      *mcp.Server
	order    []string        // the tools' names as they are listed
	upstream func() []string // the IDs of the servers behind the tools
	network  bool            // code may ask for hosts
	packages Packages
	parking  *parking // nil without approvals

	approvals Approvals // nil: people are not asked through the host

	changes       Changes // may be nil
	subscriptions subscriptions
	addSearch     func() // adds search_tools
	levels        logLevels
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
	if opts.Files == nil {
		opts.Files = noFiles{}
	}
	if opts.ServerIDs == nil {
		opts.ServerIDs = func() []string { return nil }
	}
	s := &Server{
		files: opts.Files,
		tools: tools, runs: runs, version: opts.Version, logger: opts.Logger, similar: opts.Similar,
		upstream: opts.ServerIDs, network: len(opts.Network) > 0, packages: opts.Packages, approvals: opts.Approvals,
		changes:       opts.Changes,
		subscriptions: subscriptions{limiter: quota.New(quota.For(quota.Subscriptions))}}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "airlock", Title: "Airlock", Version: opts.Version},
		s.sdkOptions(opts.Mark))
	if err := s.addTools(opts.CallTool, opts.Network); err != nil {
		return nil, err
	}
	s.addPrompt()
	s.addResources()
	s.mcp.AddSendingMiddleware(s.announce)
	if err := s.addTaskMethods(); err != nil {
		return nil, err
	}
	s.mcp.AddReceivingMiddleware(s.apps, s.listInOrder, s.nameServers, s.listOwnFiles, s.features, s.keepLogLevel,
		s.tasks, s.answerUnknown)
	var err error
	s.Transport, err = server.New(s.mcp, server.Options{
		Principal: opts.Principal, Profile: opts.Profile, Local: opts.Local, Logger: opts.Logger, Gate: opts.Gate,
		WhileKnown: opts.WhileKnown, EndSession: s.endSession, Tools: s.order,
		SessionKey: opts.SessionKey,
	})
	if err != nil {
		return nil, err
	}
	if opts.Changes != nil {
		opts.Changes.Follow(s.listsChanged, s.updated)
	}
	if opts.Approvals != nil {
		s.parking = newParking(opts.Approvals, runs.Start, s.Gate(), opts.Mark)
	}
	return s, nil
}

// sdkOptions returns the options of the SDK's server.
func (s *Server) sdkOptions(mark func(id string) string) *mcp.ServerOptions {
	follows := s.changes != nil
	o := &mcp.ServerOptions{
		Instructions:      instructions(nil), // see nameServers
		Logger:            server.SDKLogger(s.logger),
		SetCacheable:      ownCache,
		CompletionHandler: s.complete,
		GetSessionID:      server.SessionIDs(mark),
		// Lists change with those of the servers. An answer names the files that its run has attached.
		Capabilities: &mcp.ServerCapabilities{
			Tools:     &mcp.ToolCapabilities{ListChanged: follows},
			Prompts:   &mcp.PromptCapabilities{ListChanged: follows},
			Resources: &mcp.ResourceCapabilities{ListChanged: follows},
			//lint:ignore SA1019 hosts of these revisions use it
			Logging: &mcp.LoggingCapabilities{},
		},
	}
	if follows {
		o.SubscribeHandler, o.UnsubscribeHandler = s.subscribe, s.unsubscribe
	}
	return o
}

// endSession ends the work of a session that has ended.
func (s *Server) endSession(id string) {
	if s.parking != nil {
		s.parking.end(id)
	}
	s.unsubscribeAll(context.Background(), s.subscriptions.end(id))
	s.runs.EndSession(id)
	s.files.EndSession(id)
}

// handler answers one tool call. If it returns a *refusal, the result has isError set and contains
// the reason. For every other error the result contains no cause.
type handler func(ctx context.Context, call call) (*mcp.CallToolResult, error)

// call is one tools/call as handlers see it.
type call struct {
	args    *arguments
	caller  caller.Caller
	request *mcp.CallToolRequest
}

// addTools registers the tools of tools.json. call_tool is optional.
func (s *Server) addTools(withCallTool bool, network []string) error {
	var tools []*mcp.Tool
	if err := strictjson.UnmarshalOpen(toolsJSON, &tools); err != nil {
		return fmt.Errorf("reading tools.json: %w", err)
	}
	handlers := map[string]handler{
		nameSearchTools:       s.searchTools,
		"get_tool_definition": s.getToolDefinition,
		"run_code":            s.runCode,
		"get_run":             s.getRun,
		"cancel_run":          s.cancelRun,
		nameCallTool:          s.callTool,
	}
	for _, tool := range tools {
		if tool.Name == nameCallTool && !withCallTool {
			continue
		}
		handle, ok := handlers[tool.Name]
		if !ok {
			return fmt.Errorf("tools.json defines %q, which nothing handles", tool.Name)
		}
		if tool.Name == "run_code" {
			tool.Description += s.packages.line()
			offerNetwork(tool, network)
		}
		s.order = append(s.order, tool.Name)
		add := func() { s.mcp.AddTool(tool, s.adapt(handle, parameters(tool))) }
		if tool.Name == nameSearchTools {
			s.addSearch = add
		}
		add()
	}
	return nil
}

// nameServers adds the names of the current servers to the instructions and to the description of
// search_tools.
func (s *Server) nameServers(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if err != nil {
			return res, err
		}
		switch res := res.(type) {
		case *mcp.InitializeResult:
			res.Instructions = s.withServers(ctx, req, s.instructions())
		case *mcp.DiscoverResult:
			res.Instructions = s.withServers(ctx, req, s.instructions())
		case *mcp.ListToolsResult:
			for i, tool := range res.Tools {
				if tool.Name == nameSearchTools {
					named := *tool
					named.Description += serversLine(s.upstream())
					res.Tools[i] = &named
				}
			}
		}
		return res, nil
	}
}

// maxServersLine is the maximum length of the server names in a tool's description, in characters.
const maxServersLine = 600

// serversLine returns the names of the connected servers, cut to maxServersLine.
func serversLine(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	line := " Servers: "
	for i, id := range ids {
		if len(line)+len(id) > maxServersLine {
			return line + fmt.Sprintf("… (%d in all).", len(ids))
		}
		line += id
		if i < len(ids)-1 {
			line += ", "
		}
	}
	return line + "."
}

// offerNetwork adds the argument network to run_code if code may ask for hosts.
func offerNetwork(tool *mcp.Tool, hosts []string) {
	schema, _ := tool.InputSchema.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	if len(hosts) == 0 || properties == nil {
		return
	}
	tool.Description = strings.Replace(tool.Description, "sandbox without network", "sandbox", 1)
	properties["network"] = map[string]any{
		"type": "array", "items": map[string]any{"enum": hosts},
		"description": "Hosts that the program connects to itself; others are unreachable. Policy decides about each.",
	}
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

// adapt converts handle to a handler of the SDK. Wrong arguments and refused runs are results, not
// protocol errors, so that the model sees them (MCP 2025-11-25, Tools, Error Handling).
func (s *Server) adapt(handle handler, known []string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		args, err := parseArguments(req.Params.Arguments, known)
		if err != nil {
			return refused(err), nil
		}
		who := s.Caller(ctx, req)
		if !who.Known() {
			return nil, server.ErrUnknownCaller
		}
		res, err := handle(ctx, call{args: args, caller: who, request: req})
		if err == nil {
			return res, nil
		}
		return s.failed(ctx, req, err), nil
	}
}

// failed returns the result of a call that could not be made. Errors without a hint are logged.
func (s *Server) failed(ctx context.Context, req *mcp.CallToolRequest, err error) *mcp.CallToolResult {
	var advised interface{ Hint() string }
	if !errors.As(err, &advised) && ctx.Err() == nil {
		s.logger.ErrorContext(ctx, "a tool of Airlock's own failed",
			slog.String(telemetry.KeyTool, req.Params.Name), slog.Any(telemetry.KeyError, err))
		err = ofMachine(err)
	}
	return refused(err)
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
