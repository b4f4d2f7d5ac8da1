package code

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// nameCallTool is a tool that is offered only if the operator enables it.
const nameCallTool = "call_tool"

// callTool makes one call without code: a run like any other, but without a sandbox.
func (s *Server) callTool(ctx context.Context, c call) (*mcp.CallToolResult, error) {
	server, tool, args := c.args.text("server", false), c.args.text("tool", true), c.args.object("arguments")
	if c.args.err != nil {
		return nil, c.args.err
	}
	snapshot := s.started(ctx, c.caller, server)
	ref, err := resolveTool(snapshot, server, tool)
	if err != nil {
		return nil, err
	}
	if ref.ServerID == "" {
		return nil, &refusal{"there is no tool " + quote(tool), "search_tools finds the names of servers and tools"}
	}
	req, err := orchestrator.CallRequest(orchestrator.ToolCall{ServerID: ref.ServerID, Name: ref.ToolName,
		Arguments: args})
	if err != nil {
		return nil, err
	}
	req.Caller, req.PreviewLarge = c.caller, true
	return s.makeRun(ctx, c, req)
}

// object returns an object argument, which may also be given as a string of JSON. Absent means an
// empty object.
func (a *arguments) object(name string) json.RawMessage {
	raw := bytes.TrimSpace(a.values[name])
	var text string
	if strictjson.UnmarshalOpen(raw, &text) == nil {
		raw = bytes.TrimSpace([]byte(text))
	}
	switch {
	case len(raw) == 0, bytes.Equal(raw, []byte("null")):
		return json.RawMessage("{}")
	case raw[0] != '{' || !json.Valid(raw):
		a.fail("the argument %q must be an object", name)
		return nil
	}
	return raw
}
