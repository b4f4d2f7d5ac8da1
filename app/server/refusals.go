package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// codeUnknownResource is the code of resources/read for an unknown resource in revisions
// before Stateless (MCP 2025-11-25, Resources, Error Handling). Later ones have -32602.
const codeUnknownResource = -32002

// wellFormed makes errors of handlers valid JSON-RPC. The SDK quotes an unknown URI as Go
// does, which is not JSON if it has a control character, and ends the connection when it
// cannot encode the error.
func wellFormed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) {
			return res, err
		}
		if read, ok := req.(*mcp.ReadResourceRequest); ok && wire.Code == jsonrpc.CodeInvalidParams &&
			read.Params != nil && len(wire.Data) > 0 {
			return nil, unknownResource(read.Params.URI, read.ProtocolVersion())
		}
		if len(wire.Data) > 0 && !json.Valid(wire.Data) {
			return nil, &jsonrpc.Error{Code: wire.Code, Message: wire.Message}
		}
		return res, err
	}
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
