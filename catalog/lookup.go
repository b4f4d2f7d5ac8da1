package catalog

import (
	"fmt"
	"slices"
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
		kind, identifier := SplitFeatureName(e.ToolName)
		return fmt.Sprintf("server %s has no %s %s%s", Quote(e.ServerID), kind.noun(), Quote(identifier), e.meant())
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

// Lookup finds a tool that can be used, or another feature by the name of FeatureName or
// UseName. One that is not there is an *UnknownError, one that is withheld a *WithheldError. A
// resource need not be listed: see readable.
func (s *Snapshot) Lookup(serverID, name string) (Tool, error) {
	use, feature := SplitUse(name)
	tool, err := s.lookup(serverID, feature)
	if err != nil || use == "" {
		return tool, err
	}
	if used, ok := tool.usedAs(use); ok {
		return used, nil
	}
	return Tool{}, s.unknown(serverID, name)
}

func (s *Snapshot) lookup(serverID, name string) (Tool, error) {
	tool, ok := s.at[toolKey{serverID, name}]
	switch {
	case !ok:
		if kind, uri := SplitFeatureName(name); kind == KindResource {
			return s.readable(serverID, uri)
		}
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
	kind, _ := SplitFeatureName(name)
	var names []string
	for _, tool := range slices.Concat(server.Tools, server.Features) {
		if tool.Kind == kind && !tool.UI.OnlyApps {
			names = append(names, tool.Name)
		}
	}
	return nearest.Words(name, names, maxSuggestions)
}
