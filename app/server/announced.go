package server

import (
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// ModelKey is the key of the language model in the _meta of a call.
const ModelKey = "io.github.airlock-mcp/model"

// maxAnnounced is the maximum length of each text in characters.
const maxAnnounced = 128

// Announced returns the name and version of the host of a call, and the language model in
// ModelKey of the call's _meta. Either may be empty. The host declares both; nothing verifies
// them.
func Announced(req mcp.Request) (host, model string) {
	if session, ok := req.GetSession().(*mcp.ServerSession); ok {
		if params := session.InitializeParams(); params != nil && params.ClientInfo != nil {
			host = announcement(params.ClientInfo.Name + " " + params.ClientInfo.Version)
		}
	}
	if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
		named, _ := call.Params.Meta[ModelKey].(string)
		model = announcement(named)
	}
	return host, model
}

func announcement(text string) string {
	return visible.Text(truncate.Characters(strings.TrimSpace(strings.ToValidUTF8(text, "")), maxAnnounced))
}
