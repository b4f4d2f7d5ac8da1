package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
)

// Snapshot is all servers and tools at one moment. It never changes, so one
// may be shared by any number of runs, and its methods may be called
// concurrently. The slices and raw bytes that it hands out must not be written to.
type Snapshot struct {
	servers []Server // by ID
	tools   []*Tool  // by server ID, then name
	at      map[toolKey]*Tool
	owners  map[string][]string // tool name, as spelling writes it: the servers that have it
	digest  string

	searchOnce sync.Once
	index      *index                       // of tools, built at the first search
	entries    []Entry                      // of tools, likewise
	docs       []document                   // of tools, likewise
	usages     map[string]map[ToolRef]Usage // by language; written by Prepare

	shownOnce sync.Once
	shown     []Server

	posesOnce sync.Once
	poses     [][]Flag // of tools: how each poses as another server's

	narrowed
}

type toolKey struct{ server, name string }

// NewSnapshot gathers servers into a snapshot. The order of servers, and of
// tools within one, makes no difference. Two servers with one ID, two tools of
// one server with one name, or a tool that names another server are errors:
// ParseTools leaves no such list.
func NewSnapshot(servers []Server) (*Snapshot, error) {
	s := &Snapshot{at: map[toolKey]*Tool{}, owners: map[string][]string{}}
	for _, server := range servers {
		server.Tools = slices.Clone(server.Tools)
		server.Features = slices.Clone(server.Features)
		server.Warnings = slices.Clone(server.Warnings)
		byName := func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) }
		slices.SortFunc(server.Tools, byName)
		slices.SortFunc(server.Features, byName)
		s.servers = append(s.servers, server)
	}
	slices.SortFunc(s.servers, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	for i, server := range s.servers {
		if server.ID == "" {
			return nil, fmt.Errorf("a server has no ID")
		}
		if i > 0 && s.servers[i-1].ID == server.ID {
			return nil, fmt.Errorf("two servers have the ID %q", server.ID)
		}
		if err := errors.Join(s.addTools(server), s.addFeatures(server)); err != nil {
			return nil, err
		}
	}
	s.digest = s.computeDigest()
	return s, nil
}

func (s *Snapshot) addTools(server Server) error {
	for i := range server.Tools {
		tool := &server.Tools[i]
		if tool.ServerID != server.ID {
			return fmt.Errorf("tool %q of server %q says it belongs to %q", tool.Name, server.ID, tool.ServerID)
		}
		key := toolKey{server.ID, tool.Name}
		if _, twice := s.at[key]; twice {
			return fmt.Errorf("server %q has two tools named %q", server.ID, tool.Name)
		}
		s.at[key] = tool
		s.tools = append(s.tools, tool)
		if name := spelling(tool.Name); name != "" { // not only separators
			s.owners[name] = append(s.owners[name], server.ID)
		}
	}
	return nil
}

// addFeatures makes the features that are not tools known to Lookup. Searches do not find them.
func (s *Snapshot) addFeatures(server Server) error {
	for i := range server.Features {
		f := &server.Features[i]
		key := toolKey{server.ID, f.Name}
		if _, twice := s.at[key]; twice || f.ServerID != server.ID || !f.IsRead() && !f.UI.OnlyApps {
			return fmt.Errorf("the feature %q of server %q is not unique, or of another server", f.Name, server.ID)
		}
		s.at[key] = f
	}
	return nil
}

// computeDigest covers each server's ID and problem and each tool's name and
// digest, length-prefixed so that no two lists write the same bytes.
func (s *Snapshot) computeDigest() string {
	h := sha256.New()
	write := func(text string) { io.WriteString(h, strconv.Itoa(len(text))+":"+text) } // a hash never fails
	for _, server := range s.servers {
		write("server")
		write(server.ID)
		write(server.Problem)
		for _, tool := range slices.Concat(server.Tools, server.Features) {
			write(tool.Name)
			write(tool.Digest)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Digest identifies the snapshot: "sha256:" and 64 hex digits over the servers,
// the problems of the missing ones, and every definition byte for byte.
func (s *Snapshot) Digest() string { return s.digest }

// Servers returns all servers, the missing ones included, by ID. Each one's
// tools are in order of their names.
func (s *Snapshot) Servers() []Server { return s.servers }

// Len returns the number of tools.
func (s *Snapshot) Len() int { return len(s.tools) }

// Tool finds a tool by the exact names that the protocol uses.
func (s *Snapshot) Tool(serverID, name string) (Tool, bool) {
	tool, ok := s.at[toolKey{serverID, name}]
	if !ok {
		return Tool{}, false
	}
	return *tool, true
}

// Server finds a server, present or missing, by its ID.
func (s *Snapshot) Server(id string) (Server, bool) {
	i, ok := slices.BinarySearchFunc(s.servers, id,
		func(server Server, id string) int { return cmp.Compare(server.ID, id) })
	if !ok {
		return Server{}, false
	}
	return s.servers[i], true
}
