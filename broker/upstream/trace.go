package upstream

import (
	"bytes"
	"context"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// traced begins the span of a call and writes into its _meta which trace it is part
// of. The caller calls ended once there is an answer or none will come.
func (s *server) traced(ctx context.Context, params *mcp.CallToolParams) (_ context.Context, _ *mcp.CallToolParams, ended func(answer, error)) {
	r := telemetry.Request{Method: methodCallTool, Tool: params.Name, Transport: "pipe", Server: s.config.ID}
	if s.config.URL != "" {
		r.Transport = "tcp"
	}
	ctx, end := telemetry.Send(ctx, r)
	telemetry.Pass(ctx, func(key, value string) {
		if params.Meta == nil {
			params.Meta = mcp.Meta{}
		}
		params.Meta[key] = value
	})
	return ctx, params, func(got answer, err error) { end(got.errorType(err)) }
}

// isErrorMark stands in every result of a tool that says it failed. A tool's own data
// may have it too: the word in a trace is no decision.
var isErrorMark = []byte(`"isError":true`)

// errorType says what kind of error an answer is, as the semantic conventions for
// MCP do; empty for none.
func (a answer) errorType(err error) string {
	switch {
	case err == nil && bytes.Contains(a.result, isErrorMark):
		return "tool_error"
	case err == nil:
		return ""
	case a.refusal != nil:
		return strconv.FormatInt(a.refusal.Code, 10)
	case a.status != 0:
		return strconv.Itoa(a.status)
	}
	return "_OTHER"
}
