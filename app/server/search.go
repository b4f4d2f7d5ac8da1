package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
)

// found is what search_tools answers.
type found struct {
	Tools   []catalog.Entry `json:"tools"`
	Missing []missing       `json:"missingServers,omitempty"`
}

// missing is a server whose tools cannot be found, and why.
type missing struct {
	ServerID string `json:"serverId"`
	Problem  string `json:"problem"`
}

func (s *Server) searchTools(_ context.Context, c call) (*mcp.CallToolResult, error) {
	query := catalog.Query{
		Text:     c.args.text("query", false),
		ServerID: c.args.text("serverId", false),
		Limit:    c.args.whole("limit", catalog.MaxLimit),
	}
	detail := c.args.text("detail", false)
	if c.args.err != nil {
		return nil, c.args.err
	}
	var err error
	if query.Detail, err = catalog.ParseDetail(detail); err != nil {
		return nil, &refusal{problem: err.Error()}
	}
	snapshot := s.tools.Snapshot()
	if query.ServerID != "" {
		if err := checkServer(snapshot, query.ServerID); err != nil {
			return nil, err
		}
	}
	answer := found{Tools: snapshot.Search(query), Missing: missingServers(snapshot)}
	if len(answer.Tools) == 0 {
		return structured(answer, "Nothing fits. Try other words, or search without a query to see all tools.")
	}
	return structured(answer)
}

func missingServers(snapshot *catalog.Snapshot) []missing {
	var out []missing
	for _, server := range snapshot.Servers() {
		if server.Problem != "" {
			out = append(out, missing{server.ID, catalog.Clean(server.Problem)})
		}
	}
	return out
}

// checkServer refuses a server that is unknown, or that is missing.
func checkServer(snapshot *catalog.Snapshot, id string) error {
	server, ok := snapshot.Server(id)
	switch {
	case !ok:
		var ids []string
		for _, server := range snapshot.Servers() {
			ids = append(ids, server.ID)
		}
		hint := "no server is configured"
		if len(ids) > 0 {
			hint = "the servers are " + strings.Join(ids, ", ")
		}
		return &refusal{fmt.Sprintf("there is no server %s", quote(id)), hint}
	case server.Problem != "":
		return &refusal{fmt.Sprintf("the server %s is missing: %s", quote(id), catalog.Clean(server.Problem)), "use the other servers, or tell the user"}
	}
	return nil
}

func (s *Server) getToolDefinition(_ context.Context, c call) (*mcp.CallToolResult, error) {
	serverID, name := c.args.text("serverId", true), c.args.text("name", true)
	if c.args.err != nil {
		return nil, c.args.err
	}
	definition, err := s.tools.Snapshot().Definition(serverID, name)
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &withheld):
		return nil, &refusal{err.Error(), "use another tool, or tell the user"}
	case err != nil:
		return nil, &refusal{err.Error(), "search_tools finds the names of servers and tools"}
	}
	return structured(definition.JSON)
}
