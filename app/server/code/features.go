package code

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxFeatures is how many resources, templates or prompts of servers one list has.
const maxFeatures = 1000

// features passes the resources and prompts of the upstream servers on to the host. A prompt has the name SERVER.NAME.
// A resource keeps its URI, unless several servers list the same one: see sharedURI. Reading a resource and getting a
// prompt are runs of one call each, with the same rules, records and redaction as calls of code.
func (s *Server) features(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.SubscriptionsListenRequest:
			ctx = context.WithValue(ctx, listenerKey{}, s.Caller(ctx, req))
		case *mcp.ReadResourceRequest:
			if _, _, own := attachment.ParseURI(r.Params.URI); !own {
				return s.readUpstream(ctx, r)
			}
		case *mcp.GetPromptRequest:
			if r.Params.Name != ownPrompt {
				return s.getUpstreamPrompt(ctx, r)
			}
		}
		res, err := next(ctx, method, req)
		if err != nil {
			return res, err
		}
		switch list := res.(type) {
		case *mcp.ListResourcesResult:
			addListed(s.snapshotOf(ctx, req), catalog.KindResource, &list.Resources)
		case *mcp.ListResourceTemplatesResult:
			addListed(s.snapshotOf(ctx, req), catalog.KindTemplate, &list.ResourceTemplates)
		case *mcp.ListPromptsResult:
			addListed(s.snapshotOf(ctx, req), catalog.KindPrompt, &list.Prompts)
		}
		return res, nil
	}
}

// snapshotOf returns what the caller of a request may see, or nil for an unknown caller.
func (s *Server) snapshotOf(ctx context.Context, req mcp.Request) *catalog.Snapshot {
	who := s.Caller(ctx, req)
	if !who.Known() {
		return nil
	}
	return s.startedAll(ctx, who)
}

// addListed appends the features of one kind to a list, as the servers define them but for flagged texts.
func addListed[T mcp.Resource | mcp.ResourceTemplate | mcp.Prompt](snapshot *catalog.Snapshot, kind catalog.Kind,
	list *[]*T) {
	if snapshot == nil {
		return
	}
	for _, f := range snapshot.FeaturesOf(kind) {
		if len(*list) >= maxFeatures {
			return
		}
		definition, err := snapshot.Definition(f.ServerID, f.Name)
		if err != nil {
			continue
		}
		item := new(T)
		if strictjson.UnmarshalOpen(definition.JSON, item) != nil {
			continue // an optional member has another type than MCP demands
		}
		switch item := any(item).(type) {
		case *mcp.Resource:
			if f.IsApp() { // its policy is narrowed when it is read
				item.Meta = nil
			}
			if id, _ := serverOf(snapshot, item.URI); id != f.ServerID {
				item.URI = sharedURI(f.ServerID, item.URI)
			}
			item.Icons = safeIcons(item.Icons)
		case *mcp.ResourceTemplate:
			item.Icons = safeIcons(item.Icons)
		case *mcp.Prompt:
			item.Name, item.Icons = promptName(f), safeIcons(item.Icons)
		}
		*list = append(*list, item)
	}
}

// promptName returns the name of a server's prompt for hosts.
func promptName(f catalog.Tool) string { return f.ServerID + "." + f.Identifier() }

// safeIcons returns the icons that hosts may load: over HTTPS, or pictures within the definition, but no documents that
// can have scripts (MCP 2025-11-25, Icons).
func safeIcons(icons []mcp.Icon) []mcp.Icon {
	return slices.DeleteFunc(icons, func(icon mcp.Icon) bool {
		for _, safe := range []string{"https://", "data:image/png;base64,", "data:image/jpeg;base64,",
			"data:image/webp;base64,"} {
			if strings.HasPrefix(icon.Source, safe) {
				return false
			}
		}
		return true
	})
}

// sharedSchemes begin the URI of a resource whose own URI several servers list, by what its own URI begins with. The
// URI of an app remains one.
var sharedSchemes = [...]struct{ own, shared string }{{"ui://", "ui://airlock-server/"}, {"", "airlock-server:"}}

// sharedURI returns the URI under which a host sees such a resource.
func sharedURI(serverID, uri string) string {
	for _, scheme := range sharedSchemes {
		if rest, ok := strings.CutPrefix(uri, scheme.own); ok {
			return scheme.shared + url.PathEscape(serverID) + "/" + rest
		}
	}
	return uri // never: the last scheme fits each URI
}

// serverOf returns the server of a URI that a host sees, and its URI there.
func serverOf(snapshot *catalog.Snapshot, uri string) (serverID, own string) {
	for _, scheme := range sharedSchemes {
		rest, shared := strings.CutPrefix(uri, scheme.shared)
		escaped, own, _ := strings.Cut(rest, "/")
		if id, err := url.PathUnescape(escaped); shared && err == nil {
			return id, scheme.own + own
		}
	}
	return snapshot.ResourceServer(uri), uri
}

func (s *Server) readUpstream(ctx context.Context, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	who := s.Caller(ctx, req)
	if !who.Known() {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	id, uri := serverOf(s.startedAll(ctx, who), req.Params.URI)
	if id == "" {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	res := &mcp.ReadResourceResult{}
	call := orchestrator.ToolCall{ServerID: id, Name: catalog.FeatureName(catalog.KindResource, uri), Host: true}
	if err := s.use(ctx, who, req, call, mcp.ResourceNotFoundError(req.Params.URI), res); err != nil {
		return nil, err
	}
	for _, part := range res.Contents {
		if part.URI == uri {
			part.URI = req.Params.URI
		}
	}
	return res, nil
}

func (s *Server) getUpstreamPrompt(ctx context.Context, req *mcp.GetPromptRequest) (mcp.Result, error) {
	unknown := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: s.Gate().Sentence("unknown prompt " + quote(req.Params.Name))}
	who := s.Caller(ctx, req)
	if !who.Known() {
		return nil, unknown
	}
	arguments := req.Params.Arguments
	if arguments == nil {
		arguments = map[string]string{}
	}
	prompt, found := promptNamed(s.startedAll(ctx, who), req.Params.Name)
	if !found {
		return nil, unknown
	}
	res := &mcp.GetPromptResult{}
	call, err := toolCall(prompt.ServerID, prompt.Name, arguments)
	if err != nil {
		return nil, err
	}
	if err := s.use(ctx, who, req, call, unknown, res); err != nil {
		return nil, err
	}
	return res, nil
}

// promptNamed returns the prompt with a name of promptName, or else the only one that its server calls so.
func promptNamed(snapshot *catalog.Snapshot, name string) (catalog.Tool, bool) {
	var own []catalog.Tool
	for _, f := range snapshot.FeaturesOf(catalog.KindPrompt) {
		if promptName(f) == name {
			return f, true
		}
		if f.Identifier() == name {
			own = append(own, f)
		}
	}
	if len(own) != 1 {
		return catalog.Tool{}, false
	}
	return own[0], true
}

// toolCall returns a call that the host makes itself.
func toolCall(serverID, name string, arguments any) (orchestrator.ToolCall, error) {
	raw, err := json.Marshal(arguments)
	return orchestrator.ToolCall{ServerID: serverID, Name: name, Arguments: raw, Host: true}, err
}

// use reads a resource or gets a prompt for a host, and decodes the result into res. unknown is returned if the server
// has no such feature.
func (s *Server) use(ctx context.Context, who caller.Caller, req mcp.Request, call orchestrator.ToolCall, unknown error,
	res any) error {
	request, err := orchestrator.CallRequest(call)
	if err != nil {
		return err
	}
	request.Caller, request.PreviewLarge = who, true
	request.Model = server.AnnouncedModel(req)
	_, end := s.listen(ctx, req, &request)
	defer end()
	run, err := s.runs.Start(ctx, request)
	if err != nil {
		return internalError(s.Gate().Sentence(err.Error()))
	}
	outcome, err := run.Wait(ctx)
	if err != nil {
		return internalError(s.Gate().Sentence(err.Error()))
	}
	result := outcome.Envelope.Result
	switch {
	case !result.OK && result.Error.Type == errortype.UnknownTool:
		return unknown
	case !result.OK:
		return internalError(result.Error.Message)
	}
	data, err := s.wholeOf(outcome.Envelope)
	if err != nil {
		return err
	}
	if strictjson.UnmarshalOpen(data, res) != nil {
		return errNotMCP
	}
	return nil
}

func internalError(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message}
}
