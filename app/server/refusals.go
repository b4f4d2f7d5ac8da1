package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// codeUnknownResource is the code for an unknown resource in revisions before Stateless
// (MCP 2025-11-25, Resources, Error Handling). Later ones have -32602.
const codeUnknownResource = -32002

// ErrUnreadable is the error of resources/read for a resource that exists and cannot be read. The reason is in the log.
var ErrUnreadable = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the resource could not be read"}

// wellFormed makes errors of handlers valid JSON-RPC. The SDK quotes an unknown URI as Go
// does, which is not JSON if it has a control character, and ends the connection when it
// cannot encode the error. Of an unknown cursor it does not name the member.
func wellFormed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) {
			return res, err
		}
		if wire.Code == jsonrpc.CodeInvalidParams && len(wire.Data) > 0 {
			switch req := req.(type) { // which has params: the data repeats their URI
			case *mcp.ReadResourceRequest:
				return nil, unknownResource(req.Params.URI, req.ProtocolVersion())
			case *mcp.SubscribeRequest:
				return nil, unknownResource(req.Params.URI, req.ProtocolVersion())
			}
		}
		if isPaged(req.GetParams()) && wire.Code == jsonrpc.CodeInvalidParams {
			return nil, &jsonrpc.Error{Code: wire.Code, Message: "the cursor is not one of this list"}
		}
		if len(wire.Data) > 0 && !json.Valid(wire.Data) {
			return nil, &jsonrpc.Error{Code: wire.Code, Message: wire.Message}
		}
		return res, err
	}
}

// isPaged reports whether the params of a request have only a cursor.
func isPaged(params mcp.Params) bool {
	switch params.(type) {
	case *mcp.ListToolsParams, *mcp.ListPromptsParams, *mcp.ListResourcesParams, *mcp.ListResourceTemplatesParams:
		return true
	}
	return false
}

// unknownResource returns the error for a URI in a revision of MCP.
func unknownResource(uri, version string) error {
	data, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return err
	}
	code := int64(codeUnknownResource)
	if version >= Stateless {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: "Resource not found", Data: data}
}
