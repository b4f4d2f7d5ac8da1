package server

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// requestKey is where the _meta of a call holds the ID of its request, for faces that
// ask for it (Options.NameRequests). What a host has put there is replaced.
const requestKey = "io.github.airlock-mcp/request"

// RequestID returns the ID of the request that a call is, as JSON, from its _meta;
// "" where the face has not asked for it.
func RequestID(meta mcp.Meta) string {
	id, _ := meta[requestKey].(string)
	return id
}

// named returns a tools/call with its request's ID in its _meta: the SDK's handlers do
// not see it, and a later notifications/cancelled names nothing else. Every other
// message is returned as it is.
func named(message []byte) []byte {
	var fields map[string]json.RawMessage
	if strictjson.UnmarshalOpen(message, &fields) != nil || string(fields["method"]) != `"tools/call"` {
		return message
	}
	var id any
	var params, meta map[string]json.RawMessage
	if strictjson.UnmarshalOpen(fields["id"], &id) != nil || strictjson.UnmarshalOpen(fields["params"], &params) != nil || params == nil {
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
