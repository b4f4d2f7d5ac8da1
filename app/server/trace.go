package server

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// traced starts a span for each request of a host. The span belongs to the host's trace if the
// request contains its context, in _meta or else in the HTTP headers.
func (t *Transport) traced(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r := telemetry.Request{Method: method, Tool: t.knownTool(req), Transport: "pipe",
			Session: t.Caller(ctx, req).Session}
		carriers := []telemetry.Carrier{inMeta(req)}
		if IsHTTP(req) {
			r.Transport = "tcp"
			carriers = append(carriers, req.GetExtra().Header.Get)
		}
		ctx, end := telemetry.Receive(ctx, r, carriers...)
		result, err := next(ctx, method, req)
		end(errorTypeOf(result, err))
		return result, err
	}
}

// knownTool returns the name of the tool that a request calls. It is empty for other requests
// and for unknown tools.
func (t *Transport) knownTool(req mcp.Request) string {
	if call, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && call != nil && slices.Contains(t.tools, call.Name) {
		return call.Name
	}
	return ""
}

// inMeta looks up the texts in a request's _meta.
func inMeta(req mcp.Request) telemetry.Carrier {
	return func(key string) string {
		params := req.GetParams()
		if params == nil || reflect.ValueOf(params).IsNil() { // a request without params has a nil pointer
			return ""
		}
		text, _ := params.GetMeta()[key].(string)
		return text
	}
}

// errorTypeOf returns the error type of a request as defined by the semantic conventions for
// MCP: the code of a JSON-RPC error, or "tool_error".
func errorTypeOf(result mcp.Result, err error) string {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return strconv.FormatInt(refused.Code, 10)
	}
	if err != nil {
		return "_OTHER"
	}
	if tool, ok := result.(*mcp.CallToolResult); ok && tool != nil && tool.IsError {
		return "tool_error"
	}
	return ""
}
