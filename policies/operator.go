package policies

import "slices"

// AllTools in Allow or Deny stands for every tool of the server.
const AllTools = "*"

// Server is what the operator's configuration says about one server
// (servers.<id>). The zero value grants nothing.
type Server struct {
	TrustAnnotations bool
	Allow            []string // tool names that run without asking, or AllTools
	Deny             []string // tool names that never run, or AllTools
	Risks            map[string]Risk
}

// Operator is what the configuration says about all servers, by ID.
type Operator map[string]Server

// Settings returns what applies to one tool.
func (o Operator) Settings(serverID, name string) Settings {
	s := o[serverID]
	return Settings{
		TrustAnnotations: s.TrustAnnotations,
		Allowed:          listed(s.Allow, name),
		Denied:           listed(s.Deny, name),
		Risk:             s.Risks[name],
	}
}

func listed(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, AllTools)
}
