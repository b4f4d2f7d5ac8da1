package code

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxToolName is the length of the name of a tool (MCP 2025-11-25, Tool Names).
const maxToolName = 128

// showsApps reports whether the host of a request has declared MCP Apps.
func showsApps(req mcp.Request) bool {
	declares, ok := req.(interface {
		ClientCapabilities() *mcp.ClientCapabilities
	})
	if !ok {
		return false
	}
	capabilities := declares.ClientCapabilities()
	if capabilities == nil {
		return false
	}
	settings, declared := capabilities.Extensions[catalog.ExtensionApps].(map[string]any)
	types, limited := settings["mimeTypes"].([]any)
	return declared && (!limited || slices.Contains(types, any(catalog.AppMIME)))
}

// apps is the middleware that lists the tools of servers with apps for hosts that show them. A tool with an app is for
// the model, which otherwise calls tools from code. The other tools are only for the apps. Airlock's own tools are only
// for the model, so that an app cannot run code.
func (s *Server) apps(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		list, ok := res.(*mcp.ListToolsResult)
		if !ok || err != nil || !showsApps(req) {
			return res, err
		}
		snapshot := s.snapshotOf(ctx, req)
		if snapshot == nil {
			return res, nil
		}
		for i, tool := range list.Tools {
			own := *tool
			own.Meta = withVisibility(own.Meta, catalog.UI{OnlyModel: true})
			list.Tools[i] = &own
		}
		tools := s.appTools(snapshot)
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			if tool := shownAppTool(snapshot, name, tools[name]); tool != nil && len(list.Tools) < maxFeatures {
				list.Tools = append(list.Tools, tool)
			}
		}
		return list, nil
	}
}

// appTools returns the tools that a host with apps calls itself, by their names for the host. Apps and hosts use the
// name that the server gives to a tool, so a tool keeps it unless another tool has it, too. Then it is SERVER.NAME.
func (s *Server) appTools(snapshot *catalog.Snapshot) map[string]catalog.Tool {
	all := snapshot.AppTools()
	qualified := func(t catalog.Tool) string { return catalog.ModuleName(t.ServerID) + "." + t.Name }
	times := map[string]int{}
	for _, name := range s.order {
		times[name]++
	}
	for _, tool := range all {
		times[tool.Name]++
		times[qualified(tool)]++
	}
	named := map[string]catalog.Tool{}
	for _, tool := range all {
		name := tool.Name
		if times[name] > 1 {
			name = qualified(tool)
		}
		if _, taken := named[name]; !taken && len(name) <= maxToolName {
			named[name] = tool
		}
	}
	return named
}

// shownAppTool returns a tool of a server as a host with apps sees it, or nil if its definition cannot be shown.
func shownAppTool(snapshot *catalog.Snapshot, name string, tool catalog.Tool) *mcp.Tool {
	definition, err := snapshot.AppDefinition(tool)
	shown := &mcp.Tool{}
	if err != nil || strictjson.UnmarshalOpen(definition, shown) != nil {
		return nil
	}
	ui := tool.UI
	if id, _ := serverOf(snapshot, ui.URI); ui.URI != "" && id != tool.ServerID {
		ui.URI = sharedURI(tool.ServerID, ui.URI)
	}
	shown.Name, shown.Icons, shown.Meta = name, safeIcons(shown.Icons), withVisibility(nil, ui)
	return shown
}

// withVisibility returns a tool's _meta with what hosts know about its app.
func withVisibility(meta mcp.Meta, ui catalog.UI) mcp.Meta {
	meta = maps.Clone(meta)
	if meta == nil {
		meta = mcp.Meta{}
	}
	shown := map[string]any{"visibility": []string{"model", "app"}}
	switch {
	case ui.OnlyModel:
		shown["visibility"] = []string{"model"}
	case ui.OnlyApps:
		shown["visibility"] = []string{"app"}
	}
	if ui.URI != "" {
		shown["resourceUri"] = ui.URI
	}
	meta["ui"] = shown
	return meta
}

// callAppTool calls a tool for a host with apps: a run of one call, with the same rules, questions and records as calls
// of code. The result is that of the tool. It returns nil if the host has no such tool.
func (s *Server) callAppTool(ctx context.Context, req *mcp.CallToolRequest, who caller.Caller) (*mcp.CallToolResult,
	error) {
	if !showsApps(req) {
		return nil, nil
	}
	tool, found := s.appTools(s.startedAll(ctx, who))[req.Params.Name]
	if !found {
		return nil, nil
	}
	request, err := orchestrator.CallRequest(orchestrator.ToolCall{ServerID: tool.ServerID, Name: tool.Name,
		Arguments: req.Params.Arguments, Host: true})
	if err == nil {
		request.Caller, request.PreviewLarge = who, true
		var res *mcp.CallToolResult
		if res, err = s.makeRun(ctx, call{caller: who, request: req}, request); err == nil {
			return res, nil
		}
	}
	return s.failed(ctx, req, err), nil
}

// direct answers with the result of a tool that the host has called itself. Only the resources of a server are apps, so
// an app within the result is left out.
func (s *Server) direct(o *orchestrator.Outcome) (*mcp.CallToolResult, error) {
	envelope := o.Envelope
	if !envelope.Result.OK {
		res := &mcp.CallToolResult{IsError: true}
		addText(res, resultText(envelope.Result))
		addText(res, runLine(envelope))
		return res, nil
	}
	data, err := s.wholeOf(envelope)
	if err != nil {
		return nil, err
	}
	res := &mcp.CallToolResult{}
	var members map[string]json.RawMessage
	if strictjson.UnmarshalOpen(data, res) != nil || strictjson.UnmarshalOpen(data, &members) != nil {
		return nil, errNotMCP
	}
	if res.StructuredContent != nil {
		res.StructuredContent = members["structuredContent"] // numbers keep their digits
	}
	res.InputRequests, res.RequestState = nil, ""
	delete(res.Meta, envelopeKey) // only Airlock writes it
	for i, block := range res.Content {
		if inner, ok := block.(*mcp.EmbeddedResource); ok && isInterface(inner.Resource) {
			res.Content[i] = &mcp.TextContent{Text: "[a user interface within the result was left out]"}
		}
	}
	return res, nil
}

// isInterface reports whether hosts would show a resource as a user interface: by its URI, or by a type of MCP-UI, the
// predecessor of MCP Apps.
func isInterface(r *mcp.ResourceContents) bool {
	return r != nil && (catalog.IsAppURI(r.URI) || strings.HasPrefix(r.MIMEType, "text/html") ||
		strings.HasPrefix(r.MIMEType, "text/uri-list") || strings.HasPrefix(r.MIMEType, "application/vnd.mcp-ui"))
}

// errNotMCP is the error for a result that the SDK cannot read.
var errNotMCP = internalError("the server's answer does not have the form that MCP requires")

// wholeOf returns the whole data of a run, also if the envelope has a preview.
func (s *Server) wholeOf(envelope orchestrator.Envelope) (json.RawMessage, error) {
	if envelope.ResultFile == nil {
		return envelope.Result.Data, nil
	}
	runID, name, _ := attachment.ParseURI(envelope.ResultFile.URI)
	_, data, err := s.files.Read(runID, name)
	if err != nil {
		return nil, internalError("the result is too large and could not be kept")
	}
	return data, nil
}
