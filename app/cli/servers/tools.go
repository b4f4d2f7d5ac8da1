package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Tools are the verbs of airlock tools.
type Tools struct {
	List    toolsListVerb    `cmd:"" help:"List the tools of all servers, or of one."`
	Search  toolsSearchVerb  `cmd:"" help:"Search the tools as a model would."`
	Show    toolsShowVerb    `cmd:"" help:"Print one tool's definition."`
	Refresh toolsRefreshVerb `cmd:"" help:"Ask every server for its tools now, and have Airlocks that serve do the same."`
	Diff    toolsDiffVerb    `cmd:"" help:"Show what changed in tools that are withheld because their definition changed."`
	Accept  toolsAcceptVerb  `cmd:"" help:"Let a tool be used again with its changed definition."`
}

// selection are the flags that list and search share.
type selection struct {
	verb.ProfiledTools
	Server string `placeholder:"ID" help:"Only the tools of this server."`
	Detail string `enum:"name,name+description" default:"name+description" help:"name or name+description."`
	JSON   bool   `name:"json" help:"Print JSON."`

	none noneFound
}

// noneFound is the message and the hint for an empty list of tools.
type noneFound struct{ said, hint string }

type toolsListVerb struct{ selection }

// Run lists all tools in the order of their names. It fails if a server is missing.
func (v *toolsListVerb) Run(ctx context.Context, s *verb.Streams) error {
	var listed *catalog.Snapshot
	v.none = noneFound{"there are no tools",
		"airlock doctor --servers starts every server and shows how it fares; airlock profiles shows what is left out"}
	err := v.print(ctx, s, func(snapshot *catalog.Snapshot) orchestrator.SearchAnswer {
		listed = snapshot
		answer := orchestrator.Search(snapshot, "", v.Server, v.Detail, 0)
		answer.Tools = everyTool(snapshot, v.Server, v.Detail)
		return answer
	})
	if err != nil {
		return err
	}
	for _, warning := range unusable(listed.Servers()) {
		if v.Server == "" || strings.HasPrefix(warning, fmt.Sprintf("server %q: ", v.Server)) {
			fmt.Fprintf(s.Err, "airlock: %s\n", verb.OneLine(warning, 400))
		}
	}
	return allThere(listed, v.Server)
}

// everyTool is a search without a query and without a limit.
func everyTool(snapshot *catalog.Snapshot, serverID, detail string) []catalog.Entry {
	tools := []catalog.Entry{}
	for _, server := range snapshot.Servers() {
		for _, tool := range server.Tools {
			if serverID != "" && serverID != server.ID {
				continue
			}
			entry := catalog.Entry{ServerID: server.ID, ToolName: tool.Name}
			if detail != string(catalog.DetailName) {
				entry.Title, entry.Description = catalog.Clean(tool.Title), catalog.Clean(tool.Description)
			}
			tools = append(tools, entry)
		}
	}
	return tools
}

type toolsSearchVerb struct {
	selection
	Query []string `arg:"" help:"What the tool should do, in words."`
	Limit int      `default:"20" help:"How many to print at most."`
}

// Run prints the tools that match the query, best first.
func (v *toolsSearchVerb) Run(ctx context.Context, s *verb.Streams) error {
	if v.Limit < 1 {
		return verb.Usage("--limit must be a number of tools, 1 or more", "airlock tools search --limit 20 WORDS")
	}
	v.none = noneFound{"nothing fits",
		"try one capability in other words, as a verb and a thing; airlock tools list shows all"}
	return v.print(ctx, s, func(snapshot *catalog.Snapshot) orchestrator.SearchAnswer {
		return orchestrator.Search(snapshot, strings.Join(v.Query, " "), v.Server, v.Detail, v.Limit)
	})
}

func (v *selection) print(ctx context.Context, s *verb.Streams,
	find func(*catalog.Snapshot) orchestrator.SearchAnswer) error {
	snapshot, err := v.Snapshot(ctx, s.Err)
	if err != nil {
		return err
	}
	answer := find(snapshot)
	if answer.Error != nil {
		return verb.Usage(answer.Error.Message, "airlock tools list")
	}
	if v.JSON {
		return verb.PrintLine(s.Out, foundJSON(answer))
	}
	if len(answer.Tools) == 0 {
		fmt.Fprintf(s.Err, "airlock: %s\nhint: %s\n", v.none.said, v.none.hint)
	}
	return verb.Paged(s, func(w io.Writer) error { return printEntries(w, answer.Tools) })
}

// foundTool is one tool in the output of --json.
type foundTool struct {
	ServerID    string `json:"server_id"`
	ToolName    string `json:"tool_name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Import      string `json:"import,omitempty"`
	Signature   string `json:"signature,omitempty"`
}

// missingServer is a server whose tools are not known in the output of --json.
type missingServer struct {
	ServerID string `json:"server_id"`
	Problem  string `json:"problem"`
}

// foundTools is the output of --json.
type foundTools struct {
	Tools   []foundTool     `json:"tools"`
	Missing []missingServer `json:"missing"`
}

func foundJSON(answer orchestrator.SearchAnswer) foundTools {
	tools, missing := []foundTool{}, []missingServer{}
	for _, e := range answer.Tools {
		tools = append(tools, foundTool{e.ServerID, e.ToolName, e.Title, e.Description, e.Import, e.Signature})
	}
	for _, m := range answer.Missing {
		missing = append(missing, missingServer{m.ServerID, m.Problem})
	}
	return foundTools{tools, missing}
}

// printEntries prints a table with one line per tool.
func printEntries(out io.Writer, entries []catalog.Entry) error {
	var t verb.Table
	for _, e := range entries {
		description := e.Description
		if verb.Width(out) == 0 {
			description = verb.OneLine(description, 100)
		}
		t.Add(verb.Text(e.ServerID, verb.Dim), verb.Text(e.ToolName, verb.Bold),
			verb.Text(verb.OneLine(description, 1000), verb.Plain))
	}
	return t.Write(out)
}

type toolsShowVerb struct {
	verb.ProfiledTools
	Server string `arg:"" help:"The server's ID, or SERVER/TOOL."`
	Tool   string `arg:"" optional:"" help:"The tool's name."`
	JSON   bool   `name:"json" help:"Print one line instead of indented JSON."`
}

// Run prints the definition of one tool: as the server sent it, or as a model would see it if
// something in it is flagged.
func (v *toolsShowVerb) Run(ctx context.Context, s *verb.Streams) error {
	if v.Tool == "" { // server/tool, as in the audit log and the list of runs
		v.Server, v.Tool, _ = strings.Cut(v.Server, "/")
	}
	if v.Tool == "" {
		return verb.Usage("<tool> is missing", "airlock tools list --server "+visible.Word(v.Server))
	}
	snapshot, err := v.Snapshot(ctx, s.Err)
	if err != nil {
		return err
	}
	definition, err := snapshot.Definition(v.Server, v.Tool)
	if err != nil {
		return NoTool(err)
	}
	for _, flag := range definition.Flags {
		fmt.Fprintf(s.Err, "airlock: flagged: %s\n", verb.OneLine(flag.String(), 200))
	}
	if v.JSON {
		return verb.PrintLine(s.Out, definition.JSON)
	}
	return printIndented(s.Out, definition.JSON)
}

// NoTool adds a hint to the error of a verb about a tool that is unknown or withheld.
func NoTool(err error) error {
	if withheld, ok := errors.AsType[*catalog.WithheldError](err); ok {
		return verb.WithHint(err, withheld.Hint(), verb.ExitRefused)
	}
	return verb.Usage(err.Error(), "airlock tools list")
}

func printIndented(out io.Writer, v any) error {
	text, err := canon.Pretty(v)
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	_, err = fmt.Fprintln(out, text)
	return err
}
