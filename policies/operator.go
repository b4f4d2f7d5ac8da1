package policies

import (
	"slices"

	"github.com/airlock-mcp/airlock/catalog"
)

// AllTools in Allow or Deny means every tool of the server.
const AllTools = "*"

// Server contains the operator's settings for one server (servers.<id>). The zero value
// grants nothing.
type Server struct {
	TrustAnnotations bool
	Allow            []string // tool names that run without asking, or AllTools, which covers no flagged tool
	Deny             []string // tool names that never run, or AllTools
	Risks            map[string]Risk
	SQL              map[string][]string // the parameters of tools that contain SQL
	Apps             catalog.AppGrant    // the grant for the apps of the server
}

// Operator contains the operator's settings for all servers, by ID.
type Operator map[string]Server

// Settings returns what applies to one tool whose definition has these flags. A
// flagged tool is only allowed by its own name: who wrote AllTools has not seen it.
func (o Operator) Settings(serverID, name string, flags []catalog.Flag) Settings {
	s := o[serverID]
	return Settings{
		TrustAnnotations: s.TrustAnnotations,
		Allowed:          slices.Contains(s.Allow, name) || len(flags) == 0 && slices.Contains(s.Allow, AllTools),
		Denied:           slices.Contains(s.Deny, name) || slices.Contains(s.Deny, AllTools),
		Risk:             s.Risks[name],
		SQL:              s.SQL[name],
		Flags:            flags,
	}
}
