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

// AnnouncedModel returns the language model in ModelKey of a call's _meta. It may be empty. The host declares it, and
// nothing verifies it.
func AnnouncedModel(req mcp.Request) string {
	call, ok := req.(*mcp.CallToolRequest)
	if !ok || call.Params == nil {
		return ""
	}
	named, _ := call.Params.Meta[ModelKey].(string)
	return Announcement(named)
}

// announcedHost returns the name and version that the host has given itself. It may be empty.
func announcedHost(req mcp.Request) string {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session == nil {
		return ""
	}
	params := session.InitializeParams()
	if params == nil || params.ClientInfo == nil {
		return ""
	}
	return Announcement(params.ClientInfo.Name + " " + params.ClientInfo.Version)
}

// Announcement makes the name that a client gives itself fit for a record: bounded, and without invisible characters.
func Announcement(text string) string {
	return visible.Text(truncate.Characters(strings.TrimSpace(strings.ToValidUTF8(text, "")), maxAnnounced))
}
