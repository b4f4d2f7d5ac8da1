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
func (s *server) traced(ctx context.Context, method string, params *mcp.CallToolParams) (_ context.Context,
	_ *mcp.CallToolParams, ended func(answer, error)) {
	r := telemetry.Request{Method: method, Tool: params.Name, Transport: "pipe", Server: s.config.ID}
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

// isErrorMark is part of every result of a failed tool. A tool's data may contain it too, but
// no decision depends on a trace.
var isErrorMark = []byte(`"isError":true`)

// errorType returns the type of an answer's error by the semantic conventions for MCP, or "".
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
