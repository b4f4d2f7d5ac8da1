package server

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// requestKey is the key of the request ID in the _meta of a call, if the face has set
// Options.NameRequests. A value of the host is replaced.
const requestKey = "io.github.airlock-mcp/request"

// RequestID returns the JSON-RPC ID of a call, as JSON, from its _meta. It returns "" if the face
// has not set Options.NameRequests.
func RequestID(meta mcp.Meta) string {
	id, _ := meta[requestKey].(string)
	return id
}

// named returns a tools/call with its request ID in its _meta. The SDK's handlers do not see
// the ID, but a later notifications/cancelled contains nothing else. Every other message is
// returned unchanged.
func named(message []byte) []byte {
	var fields map[string]json.RawMessage
	if strictjson.UnmarshalOpen(message, &fields) != nil || string(fields["method"]) != `"tools/call"` {
		return message
	}
	var id any
	var params, meta map[string]json.RawMessage
	if strictjson.UnmarshalOpen(fields["id"], &id) != nil ||
		strictjson.UnmarshalOpen(fields["params"], &params) != nil || params == nil {
		return message
	}
	if len(params["_meta"]) > 0 && strictjson.UnmarshalOpen(params["_meta"], &meta) != nil {
		return message // the SDK refuses it
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	text, err := json.Marshal(id)
	if err == nil {
		meta[requestKey], err = json.Marshal(string(text))
	}
	if err == nil {
		params["_meta"], err = json.Marshal(meta)
	}
	if err == nil {
		fields["params"], err = json.Marshal(params)
	}
	if changed, failed := json.Marshal(fields); err == nil && failed == nil {
		return changed
	}
	return message
}
