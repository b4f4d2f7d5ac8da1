package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/kernel"
)

const jsonType = "application/json"

// templateOrder are the templates in the order of the document.
var templateOrder = []string{"vfs://{agent_id}/mem/{path}", "vfs://{agent_id}/policy/{path}", "audit://{agent_id}/log"}

// addResources lists the resources. readResources serves them, because the SDK's templates do not
// match a path with a slash.
func (s *Server) addResources(face *mcp.Server) {
	unused := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	face.AddResource(&mcp.Resource{URI: "vfs://", Name: "Agent VFS Root",
		Description: "Virtual File System for agent memory", MIMEType: jsonType}, unused)
	face.AddResource(&mcp.Resource{URI: "audit://", Name: "Audit Log",
		Description: "Immutable audit trail of agent actions", MIMEType: jsonType}, unused)
	for i, template := range []*mcp.ResourceTemplate{
		{Name: "Agent working memory", Description: "Agent working memory"},
		{Name: "Agent policy files",
			Description: "Agent policy files: the rules in force, and the agent's registration; read-only"},
		{Name: "Agent audit trail", Description: "Read-only audit trail for a specific agent", MIMEType: jsonType},
	} {
		template.URITemplate = templateOrder[i]
		face.AddResourceTemplate(template, unused)
	}
}

// readResources serves resources/read.
func (s *Server) readResources(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		read, ok := req.(*mcp.ReadResourceRequest)
		if !ok || read.Params == nil {
			return next(ctx, method, req)
		}
		who := s.Caller(ctx, req)
		if !who.Known() {
			return nil, server.ErrUnknownCaller
		}
		uri, actor := read.Params.URI, kernel.Actor{Caller: who}
		if err := s.kernel.AwaitTurn(ctx, actor); err != nil {
			return nil, err
		}
		content, err := s.resource(ctx, actor, uri)
		if errors.Is(err, kernel.ErrNoFile) {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		if err != nil {
			s.logger.ErrorContext(ctx, "a resource of the kernel could not be read",
				slog.Any(telemetry.KeyError, err))
			return nil, server.ErrUnreadable
		}
		content.URI = uri
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}}, nil
	}
}

// resource returns the content of a URI, or kernel.ErrNoFile. Each part of the URI is decoded
// once (RFC 3986, section 2.4).
func (s *Server) resource(ctx context.Context, a kernel.Actor, uri string) (*mcp.ResourceContents, error) {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || strings.ContainsAny(rest, "?#") {
		return nil, kernel.ErrNoFile
	}
	agent, path, deeper := strings.Cut(rest, "/")
	agent, err1 := url.PathUnescape(agent)
	path, err2 := url.PathUnescape(path)
	switch {
	case err1 != nil || err2 != nil:
		return nil, kernel.ErrNoFile
	case scheme == "vfs" && rest == "":
		return document(s.kernel.Root(ctx, a))
	case scheme == "audit" && rest == "":
		return s.auditTrail(ctx, a, "")
	case agent == "" || !deeper:
		return nil, kernel.ErrNoFile
	case scheme == "audit" && path == "log":
		return s.auditTrail(ctx, a, agent)
	case scheme != "vfs":
		return nil, kernel.ErrNoFile
	}
	area, name, _ := strings.Cut(path, "/")
	switch {
	case area == "mem" && (name == "" || strings.HasSuffix(name, "/")):
		files, err := s.kernel.ListFiles(ctx, a, agent, name)
		return document(map[string]any{"agent_id": agent, "files": files}, err)
	case area == "mem":
		return file(s.kernel.ReadFile(ctx, a, agent, name))
	case area == "policy" && name == "":
		names, err := s.kernel.PolicyFileNames(ctx, a, agent)
		return document(map[string]any{"agent_id": agent, "files": names}, err)
	case area == "policy":
		return file(s.kernel.PolicyFile(ctx, a, agent, name))
	}
	return nil, kernel.ErrNoFile
}

// auditEntries is the maximum number of entries in a resource. get_audit_log has pages.
const auditEntries = 100

func (s *Server) auditTrail(ctx context.Context, a kernel.Actor, agent string) (*mcp.ResourceContents, error) {
	view, err := s.kernel.Log(ctx, a, kernel.LogQuery{Limit: auditEntries, Agent: agent})
	var no *kernel.Refusal
	if errors.As(err, &no) {
		return nil, kernel.ErrNoFile
	}
	if err == nil && agent != "" && view.Total == 0 { // there may be no such agent
		if _, err := s.kernel.PolicyFileNames(ctx, a, agent); err != nil {
			return nil, err
		}
	}
	return document(view, err)
}

// document returns an answer as JSON.
func document(answer any, err error) (*mcp.ResourceContents, error) {
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(answer)
	return &mcp.ResourceContents{MIMEType: jsonType, Text: string(raw)}, err
}

// file returns the content of a file, as text if it is valid UTF-8.
func file(content []byte, err error) (*mcp.ResourceContents, error) {
	switch {
	case err != nil:
		return nil, err
	case !utf8.Valid(content):
		return &mcp.ResourceContents{MIMEType: "application/octet-stream", Blob: content}, nil
	case json.Valid(content):
		return &mcp.ResourceContents{MIMEType: jsonType, Text: string(content)}, nil
	}
	return &mcp.ResourceContents{MIMEType: "text/plain", Text: string(content)}, nil
}
