package server

import (
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// ModelKey is where the _meta of a call may name the language model that makes it.
const ModelKey = "io.github.airlock-mcp/model"

// maxAnnounced is how many characters of each are kept.
const maxAnnounced = 128

// Announced returns what the host of a call says of itself: its name and version, and
// its language model where the call's _meta has ModelKey. Nothing proves either.
func Announced(call *mcp.CallToolRequest) (host, model string) {
	if params := call.Session.InitializeParams(); params != nil && params.ClientInfo != nil {
		host = announcement(params.ClientInfo.Name + " " + params.ClientInfo.Version)
	}
	if call.Params != nil {
		named, _ := call.Params.Meta[ModelKey].(string)
		model = announcement(named)
	}
	return host, model
}

func announcement(text string) string {
	return visible.Text(truncate.Characters(strings.TrimSpace(strings.ToValidUTF8(text, "")), maxAnnounced))
}
