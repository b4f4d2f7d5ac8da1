package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxSuggestions is how many names an error suggests.
const maxSuggestions = 3

// UnknownError says that a server or a tool is not there, and what was probably
// meant.
type UnknownError struct {
	ServerID string
	ToolName string // empty when the server is what is unknown
	// Problem is set when the server is configured but missing: why.
	Problem string
	// Suggestions are the names nearest to what was asked for, best first.
	Suggestions []string
}

// Error is one sentence.
func (e *UnknownError) Error() string {
	switch {
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
	quoted := make([]string, len(e.Suggestions))
	for i, name := range e.Suggestions {
		quoted[i] = Quote(name)
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
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
		return &UnknownError{ServerID: serverID, Suggestions: nearest(serverID, s.serverIDs())}
	}
	return &UnknownError{ServerID: serverID, ToolName: name, Problem: server.Problem, Suggestions: s.Nearest(serverID, name)}
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
	return nearest(name, names)
}

// nearest ranks names by edit distance, spelling variants (case, camelCase,
// separators) counting as equal, and keeps those within a third of the length.
func nearest(name string, names []string) []string {
	if len(name) > maxNameLength {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	wanted := spelling(name)
	var near []candidate
	for _, other := range names {
		if d := editDistance(wanted, spelling(other)); d <= max(2, len(wanted)/3) {
			near = append(near, candidate{other, d})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	found := make([]string, 0, maxSuggestions)
	for _, c := range near[:min(len(near), maxSuggestions)] {
		found = append(found, c.name)
	}
	return found
}

// editDistance counts the bytes to insert, delete, replace or swap with their
// neighbour (optimal string alignment).
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
