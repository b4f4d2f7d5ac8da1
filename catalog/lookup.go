package catalog

import (
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/internal/nearest"
)

// maxSuggestions is how many names an error suggests.
const maxSuggestions = 3

// UnknownError reports that a server or a tool does not exist, with the names that were
// probably meant.
type UnknownError struct {
	ServerID string
	ToolName string // empty when the server is what is unknown
	// Problem is set when the server is configured but missing: why.
	Problem string
	// Suggestions are the names nearest to what was asked for, best first.
	Suggestions []string
	// Owners are the servers that have a tool of the name that was asked for as a server's.
	Owners []string
}

// Error is one sentence.
func (e *UnknownError) Error() string {
	switch {
	case e.ToolName == "" && len(e.Owners) > 0:
		return fmt.Sprintf("no server is called %s; it is a tool of server %s", Quote(e.ServerID), quoted(e.Owners))
	case e.ToolName == "":
		return fmt.Sprintf("no server is called %s%s", Quote(e.ServerID), e.meant())
	case e.Problem != "":
		return fmt.Sprintf("server %s is missing: %s", Quote(e.ServerID), e.Problem)
	default:
		return fmt.Sprintf("server %s has no tool %s%s", Quote(e.ServerID), Quote(e.ToolName), e.meant())
	}
}

func (e *UnknownError) meant() string {
	if len(e.Suggestions) == 0 {
		return ""
	}
	return "; did you mean " + quoted(e.Suggestions) + "?"
}

// quoted joins names that come from outside with "or".
func quoted(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = Quote(name)
	}
	return strings.Join(out, " or ")
}

// Lookup finds a tool that can be used. One that is not there is an
// *UnknownError, one that is withheld a *WithheldError.
func (s *Snapshot) Lookup(serverID, name string) (Tool, error) {
	tool, ok := s.at[toolKey{serverID, name}]
	switch {
	case !ok:
		return Tool{}, s.unknown(serverID, name)
	case tool.Withheld:
		return Tool{}, &WithheldError{serverID, name}
	}
	return *tool, nil
}

func (s *Snapshot) unknown(serverID, name string) error {
	server, ok := s.Server(serverID)
	if !ok {
		return &UnknownError{ServerID: serverID, Suggestions: nearest.Words(serverID, s.serverIDs(), maxSuggestions),
			Owners: s.toolOwners(serverID)}
	}
	return &UnknownError{ServerID: serverID, ToolName: name, Problem: server.Problem,
		Suggestions: s.Nearest(serverID, name)}
}

// toolOwners returns up to three servers that have a tool of this name, in any spelling.
func (s *Snapshot) toolOwners(name string) []string {
	ids := s.owners[spelling(name)]
	return ids[:min(len(ids), maxSuggestions)]
}

func (s *Snapshot) serverIDs() []string {
	ids := make([]string, len(s.servers))
	for i, server := range s.servers {
		ids[i] = server.ID
	}
	return ids
}

// Nearest returns up to three tool names of a server that a misspelt name
// probably meant, best first; none when nothing is near.
func (s *Snapshot) Nearest(serverID, name string) []string {
	server, ok := s.Server(serverID)
	if !ok {
		return nil
	}
	names := make([]string, len(server.Tools))
	for i, tool := range server.Tools {
		names[i] = tool.Name
	}
	return nearest.Words(name, names, maxSuggestions)
}
