// Package kernel is the face with the kernel's tools: an MCP server
// "agent-os-kernel" with eight tools, two resources with templates, and three
// prompts. The top-level package kernel implements them.
package kernel

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/verify"
)

// Name and Version are the server's name and version in the handshake. They are those of the
// document that describes the tools.
const (
	Name    = "agent-os-kernel"
	Version = "1.2.0"
)

// Options are the options of New. Principal is required.
type Options struct {
	Principal string                 // the owner of a host on stdio
	Profile   string                 // the profile of a host on stdio
	Local     server.Local           // returns the caller on stdio; nil means the principal
	Logger    *slog.Logger           // nil logs nothing
	Gate      server.Gate            // nil changes nothing
	Mark      func(id string) string // see server.SessionIDs; nil changes nothing
	// WhileKnown is server.Options.WhileKnown.
	WhileKnown func(ctx context.Context, who caller.Caller, ended func(error)) (stop func())
	EndSession func(id string) // ends the runs of a session that has ended, and waits for them; nil does nothing
}

// Server is the face on its transport.
type Server struct {
	*server.Transport
	kernel *kernel.Service
	logger *slog.Logger
	order  []string // the tools' names as they are listed
}

//go:embed tools.json
var toolsJSON []byte

//go:embed instructions.md
var instructions string

// New returns the face of a kernel.
func New(k *kernel.Service, opts Options) (*Server, error) {
	if k == nil || opts.Principal == "" {
		return nil, errors.New("the kernel face needs a kernel and a principal")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{kernel: k, logger: opts.Logger}
	face := mcp.NewServer(
		&mcp.Implementation{Name: Name, Title: "Agent OS kernel by Airlock", Version: Version},
		&mcp.ServerOptions{
			Instructions: strings.TrimSpace(instructions),
			Logger:       server.SDKLogger(opts.Logger),
			SetCacheable: ownCache,
			GetSessionID: server.SessionIDs(opts.Mark),
			Capabilities: &mcp.ServerCapabilities{
				Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{},
				Resources: &mcp.ResourceCapabilities{},
			},
		})
	if err := s.addTools(face); err != nil {
		return nil, err
	}
	s.addPrompts(face)
	s.addResources(face)
	face.AddReceivingMiddleware(s.listInOrder, s.readResources)
	var err error
	s.Transport, err = server.New(face, server.Options{
		Principal: opts.Principal, Profile: opts.Profile, Local: opts.Local, Logger: opts.Logger, Gate: opts.Gate,
		WhileKnown: opts.WhileKnown, EndSession: opts.EndSession, Tools: s.order,
	})
	return s, err
}

// handler answers one tool call with the value of the result.
type handler func(ctx context.Context, a kernel.Actor, arguments json.RawMessage) (any, error)

func (s *Server) addTools(face *mcp.Server) error {
	var tools []*mcp.Tool
	if err := strictjson.UnmarshalOpen(toolsJSON, &tools); err != nil {
		return fmt.Errorf("reading tools.json: %w", err)
	}
	handlers := map[string]handler{
		"verify_code_safety": s.verifyCodeSafety, "cmvk_verify": s.verifyClaim, "cmvk_review": s.reviewCode,
		"kernel_execute": s.execute,
		"iatp_sign":      s.sign, "iatp_verify": s.verifyAgent, "iatp_reputation": s.reputation,
		"get_audit_log": s.auditLog,
	}
	for _, tool := range tools {
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			return fmt.Errorf("reading tools.json: %w", err)
		}
		input, err := schema.Compile(raw)
		if err != nil {
			return fmt.Errorf("the schema of %s: %w", tool.Name, err)
		}
		handle, ok := handlers[tool.Name]
		if !ok {
			return fmt.Errorf("tools.json defines %q, which nothing handles", tool.Name)
		}
		s.order = append(s.order, tool.Name)
		face.AddTool(tool, s.adapt(input, handle))
	}
	return nil
}

// adapt converts handle to a handler of the SDK. Invalid arguments and refusals are results
// with isError set, so that the model sees them (MCP 2025-11-25, Tools, Error Handling): the
// object {"error": …} as text and as structured content.
func (s *Server) adapt(input *schema.Schema, handle handler) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		who := s.Caller(ctx, req)
		if !who.Known() {
			return nil, server.ErrUnknownCaller
		}
		arguments := req.Params.Arguments
		if len(arguments) == 0 {
			arguments = json.RawMessage("{}")
		}
		if err := input.Validate(arguments); err != nil {
			return failed(map[string]string{"error": "Invalid arguments: " + err.Error()})
		}
		s.Follow(req, who)
		actor := kernel.Actor{Caller: who}
		if err := s.kernel.AwaitTurn(ctx, actor); err != nil {
			return nil, err
		}
		answer, err := handle(ctx, actor, arguments)
		if err == nil {
			return result(answer)
		}
		return s.refused(ctx, req, err)
	}
}

// refused returns the result for an error of a handler. Refusals are sent with their reason;
// other errors are logged.
func (s *Server) refused(ctx context.Context, req *mcp.CallToolRequest, err error) (*mcp.CallToolResult, error) {
	var no *kernel.Refusal
	var none *kernel.NoVerdict
	var advised interface{ Hint() string }
	if done, tried := asFailure(err); tried {
		return failed(done)
	}
	switch {
	case errors.As(err, &none):
		return failed(struct {
			Error string `json:"error"`
			*kernel.NoVerdict
		}{none.Error(), none})
	case errors.As(err, &no):
		return failed(map[string]string{"error": no.Text})
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, verify.ErrBusy):
		return failed(map[string]string{"error": "No verdict: the engines are busy; try it again later"})
	case errors.As(err, &advised):
		return failed(map[string]string{"error": fmt.Sprintf(
			"The kernel could not do this: %s (hint: %s)", s.Gate().Sentence(err.Error()), advised.Hint())})
	case errors.Is(err, kernel.ErrNoVerifier):
		return failed(map[string]string{"error": "No verdict: the verification service is not available here, so no " +
			"code is called safe"})
	}
	s.logger.ErrorContext(ctx, "a tool of the kernel failed", slog.String(telemetry.KeyTool, req.Params.Name),
		slog.Any(telemetry.KeyError, err))
	return failed(map[string]string{"error": "The kernel could not do this, and did nothing; the log of the server " +
		"shows why"})
}

// result returns an answer as text and as structured content.
func result(answer any) (*mcp.CallToolResult, error) {
	raw, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(raw)}},
		StructuredContent: json.RawMessage(raw)}, nil
}

func failed(answer any) (*mcp.CallToolResult, error) {
	res, err := result(answer)
	if err == nil {
		res.IsError = true
	}
	return res, err
}

// listInOrder puts lists into the order of the document: the SDK sorts by name.
func (s *Server) listInOrder(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if err != nil {
			return res, err
		}
		switch list := res.(type) {
		case *mcp.ListToolsResult:
			slices.SortFunc(list.Tools,
				func(a, b *mcp.Tool) int { return slices.Index(s.order, a.Name) - slices.Index(s.order, b.Name) })
		case *mcp.ListPromptsResult:
			slices.SortFunc(list.Prompts,
				func(a, b *mcp.Prompt) int { return promptIndex(a.Name) - promptIndex(b.Name) })
		case *mcp.ListResourcesResult:
			slices.SortFunc(list.Resources, func(a, b *mcp.Resource) int { return -strings.Compare(a.URI, b.URI) })
		case *mcp.ListResourceTemplatesResult:
			slices.SortFunc(list.ResourceTemplates, func(a, b *mcp.ResourceTemplate) int {
				return slices.Index(templateOrder, a.URITemplate) - slices.Index(templateOrder, b.URITemplate)
			})
		}
		return res, err
	}
}

// ownCache marks resources as cacheable by the caller only, because they differ between callers
// (MCP 2026-07-28, Caching).
func ownCache(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	if _, ok := req.(*mcp.ReadResourceRequest); ok {
		c.CacheScope = "private"
	}
}
