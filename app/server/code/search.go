package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// nameSearchTools is the tool whose description contains the server names.
const nameSearchTools = "search_tools"

// The time that an answer about tools waits for servers that have neither answered nor failed
// since Airlock started: for a server that is named in the request, and for all of them if
// nothing else is found.
const (
	startTimeout = 5 * time.Second
	allTimeout   = time.Second
)

func (s *Server) searchTools(ctx context.Context, c call) (*mcp.CallToolResult, error) {
	query := catalog.Query{
		Text:     c.args.text("query", false),
		ServerID: c.args.text("serverId", false),
		Limit:    c.args.whole("limit", catalog.MaxLimit),
		Offset:   c.args.count("offset", maxOffset),
	}
	query.Language = cmp.Or(language(c.args.text("language", false)), "python")
	detail := c.args.text("detail", false)
	if c.args.err != nil {
		return nil, c.args.err
	}
	query.ServerID = serverNamed(s.tools.Snapshot(c.caller), query.ServerID)
	query.Text = strings.ReplaceAll(query.Text, "\n", " ")
	var err error
	if query.Detail, err = catalog.ParseDetail(detail); err != nil {
		return nil, &refusal{problem: err.Error()}
	}
	snapshot := s.started(ctx, c.caller, query.ServerID)
	if query.ServerID != "" {
		if err := checkServer(snapshot, query.ServerID); err != nil {
			return nil, err
		}
	}
	answer, notes := s.find(ctx, snapshot, query)
	if answer.Total == 0 && query.ServerID == "" {
		snapshot = s.startedAll(ctx, c.caller)
		answer, notes = s.find(ctx, snapshot, query)
	}
	answer.Missing = snapshot.Missing("")
	switch {
	case answer.Total == 0:
		notes = append(notes,
			"Nothing fits. Try one capability in other words, as a verb and a thing, or search without a query to "+
				"see all tools.")
	case len(answer.Tools) == 0:
		notes = append(notes, fmt.Sprintf("The offset is behind the last of %d tools. Use a smaller one.",
			answer.Total))
	}
	return structured(answer, notes...)
}

// find searches by words, and also by meaning if that is configured.
func (s *Server) find(ctx context.Context, snapshot *catalog.Snapshot, query catalog.Query) (catalog.Answer, []string) {
	var notes []string
	if s.similar != nil && strings.TrimSpace(query.Text) != "" {
		var note string
		if query.Similar, note = s.similar(ctx, snapshot, query.Text); note != "" {
			notes = append(notes, note)
		}
	}
	return snapshot.Find(query), notes
}

// maxOffset is larger than any catalog.
const maxOffset = 1_000_000

// started waits until the named server is no longer starting, up to startTimeout, and returns a
// snapshot.
func (s *Server) started(ctx context.Context, who caller.Caller, serverID string) *catalog.Snapshot {
	snapshot := s.tools.Snapshot(who)
	if serverID == "" {
		return snapshot
	}
	return s.awaited(ctx, who, snapshot, snapshot.Missing(serverID), startTimeout)
}

// startedAll is like started for all servers, with the limit allTimeout.
func (s *Server) startedAll(ctx context.Context, who caller.Caller) *catalog.Snapshot {
	snapshot := s.tools.Snapshot(who)
	return s.awaited(ctx, who, snapshot, snapshot.Missing(""), allTimeout)
}

func (s *Server) awaited(ctx context.Context, who caller.Caller, snapshot *catalog.Snapshot,
	missing []catalog.MissingServer, timeout time.Duration) *catalog.Snapshot {
	var starting []string
	for _, server := range missing {
		if server.Starting {
			starting = append(starting, server.ServerID)
		}
	}
	if len(starting) == 0 {
		return snapshot
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// An error means that they are still starting; the answer then contains a note.
	_ = s.tools.Await(ctx, starting...)
	return s.tools.Snapshot(who)
}

// checkServer returns an error if a server is unknown or missing.
func checkServer(snapshot *catalog.Snapshot, id string) error {
	server, ok := snapshot.Server(id)
	switch {
	case !ok:
		return &refusal{fmt.Sprintf("there is no server %s", quote(id)), namesOf(snapshot)}
	case server.Problem != "":
		return &refusal{fmt.Sprintf("the server %s is missing: %s", quote(id), catalog.Clean(server.Problem)),
			missingHint(server)}
	}
	return nil
}

// missingHint returns a hint for a server that is missing.
func missingHint(server catalog.Server) string {
	if server.Retrying {
		return "retryable: it is tried again in the background, so ask again in a moment; else use the other " +
			"servers, or tell the user"
	}
	return "use the other servers, or tell the user"
}

// namesOf returns the hint for an unknown server.
func namesOf(snapshot *catalog.Snapshot) string {
	var ids []string
	for _, server := range snapshot.Servers() {
		ids = append(ids, server.ID)
	}
	if len(ids) == 0 {
		return "no server is configured"
	}
	return "the servers are " + strings.Join(ids, ", ")
}

func (s *Server) getToolDefinition(ctx context.Context, c call) (*mcp.CallToolResult, error) {
	serverID, name := c.args.text("serverId", false), c.args.text("name", false)
	switch {
	case c.args.err != nil:
		return nil, c.args.err
	case name == "":
		return nil, &refusal{`the argument "name" is missing or empty`,
			"search_tools lists the tools of all servers, or with serverId those of one"}
	}
	if names := strings.Split(name, "\n"); len(names) > 1 {
		return nil, &refusal{"one call returns one definition", "call it for each: " + strings.Join(names, ", ")}
	}
	snapshot := s.started(ctx, c.caller, serverNamed(s.tools.Snapshot(c.caller), serverID))
	tool, err := resolveTool(snapshot, serverID, name)
	switch {
	case err != nil:
		return nil, err
	case tool.ServerID == "":
		return nil, &refusal{`the argument "serverId" is missing or empty`, namesOf(snapshot)}
	}
	serverID = tool.ServerID
	definition, err := snapshot.Definition(serverID, tool.ToolName)
	var withheld *catalog.WithheldError
	switch {
	case errors.As(err, &withheld):
		return nil, &refusal{err.Error(), "use another tool, or tell the user"}
	case err != nil:
		if server, known := snapshot.Server(serverID); known && server.Problem != "" {
			return nil, &refusal{err.Error(), missingHint(server)}
		}
		return nil, &refusal{err.Error(), "search_tools finds the names of servers and tools"}
	}
	res, err := structured(definition.JSON)
	if err == nil {
		addText(res, aboutServer(snapshot, serverID))
	}
	return res, err
}
