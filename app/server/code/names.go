package code

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/nearest"
)

// serverNamed returns the ID of the server that matches a name in any spelling. If no server or
// more than one matches, it returns the name.
func serverNamed(snapshot *catalog.Snapshot, name string) string {
	if isServer(snapshot, name) {
		return name
	}
	found := name
	for _, server := range snapshot.Servers() {
		switch {
		case plain(server.ID) != plain(name):
		case found != name:
			return name
		default:
			found = server.ID
		}
	}
	return found
}

func isServer(snapshot *catalog.Snapshot, id string) bool {
	_, ok := snapshot.Server(id)
	return ok
}

// toolsNamed returns the tools that match a name in any spelling: the name of a tool, or the names
// of its server and the tool ("crm.list_contacts", "mcp__crm__list_contacts"). serverID limits the
// search to one server; "" means all.
func toolsNamed(snapshot *catalog.Snapshot, serverID, name string) []catalog.ToolRef {
	wanted := plain(strings.TrimPrefix(strings.TrimSpace(name), "mcp__"))
	if wanted == "" {
		return nil
	}
	var exact, spelt []catalog.ToolRef
	for _, server := range snapshot.Servers() {
		if serverID != "" && server.ID != serverID {
			continue
		}
		for _, tool := range server.Tools {
			ref := catalog.ToolRef{ServerID: server.ID, ToolName: tool.Name}
			switch {
			case tool.Name == name:
				exact = append(exact, ref)
			case plain(tool.Name) == wanted, plain(server.ID+tool.Name) == wanted:
				spelt = append(spelt, ref)
			}
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return spelt
}

// resolveTool returns the tool that matches the server ID and name in any spelling. If no tool
// matches, it returns the given names. If several servers have the tool, it returns an error.
func resolveTool(snapshot *catalog.Snapshot, serverID, name string) (catalog.ToolRef, error) {
	if serverID != "" {
		serverID = serverNamed(snapshot, serverID)
	}
	found := toolsNamed(snapshot, serverID, name)
	switch {
	case len(found) == 1:
		return found[0], nil
	case serverID != "" || len(found) == 0:
		return catalog.ToolRef{ServerID: serverID, ToolName: name}, nil
	}
	var servers []string
	for _, ref := range found {
		servers = append(servers, ref.ServerID)
	}
	return catalog.ToolRef{}, &refusal{
		fmt.Sprintf("several servers have a tool %s", quote(name)),
		"say which with serverId: " + strings.Join(slices.Compact(servers), ", ")}
}

// answerUnknown answers calls of tools that Airlock does not have. Most of them are tools of a
// server, which only programs can call, and hosts with apps. The error has the code of the protocol, and a message
// with the correct call.
func (s *Server) answerUnknown(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok || call.Params == nil || slices.Contains(s.order, call.Params.Name) {
			return next(ctx, method, req)
		}
		who := s.Caller(ctx, req)
		if !who.Known() {
			return nil, server.ErrUnknownCaller
		}
		if res, err := s.callAppTool(ctx, call, who); res != nil || err != nil {
			return res, err
		}
		sentence := s.unknownTool(s.tools.Snapshot(who), call.Params)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: s.Gate().Sentence(sentence)}
	}
}

// others are names that models give Airlock's own tools, in plain spelling.
var others = map[string]string{
	"executecode": "run_code", "execute": "run_code", "exec": "run_code", "python": "run_code", "runpython": "run_code",
	"codeinterpreter": "run_code",
	"javascript":      "run_code", "node": "run_code", "eval": "run_code", "bash": "run_code", "shell": "run_code",
	"runprogram": "run_code", "codemode": "run_code",
	"calltool": "run_code", "usemcptool": "run_code", "invoketool": "run_code", "executetool": "run_code",
	"listtools": "search_tools", "findtools": "search_tools", "search": "search_tools", "toolsearch": "search_tools",
	"discovertools":  "search_tools",
	"tooldefinition": "get_tool_definition", "gettool": "get_tool_definition", "gettoolschema": "get_tool_definition",
	"describetool": "get_tool_definition",
	"getresult":    "get_run", "getoutput": "get_run", "stoprun": "cancel_run", "killrun": "cancel_run",
}

// unknownTool returns a sentence with the call to use instead of a tool that Airlock does not
// have.
func (s *Server) unknownTool(snapshot *catalog.Snapshot, call *mcp.CallToolParamsRaw) string {
	name := call.Name
	unknown := "unknown tool " + quote(name)
	last := name[strings.LastIndex(name, "__")+1:]
	for _, own := range s.order {
		if plain(own) == plain(name) || plain(own) == plain(last) {
			return fmt.Sprintf("%s; its name is %q", unknown, own)
		}
	}
	if found := toolsNamed(snapshot, "", name); len(found) > 0 {
		return unknown + ": the tools of servers are called by programs. " +
			howToCall(snapshot, found[0], call.Arguments)
	}
	if own := others[plain(name)]; own != "" {
		return fmt.Sprintf("%s; call %q", unknown, own)
	}
	if server := serverNamed(snapshot, name); isServer(snapshot, server) {
		return fmt.Sprintf("%s: %q is a server, whose tools programs call. Find them with search_tools, and call "+
			"them in run_code", unknown, server)
	}
	if near := nearest.Word(name, s.order); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", unknown, near)
	}
	return fmt.Sprintf("%s; the tools are %s. Those of servers are found with search_tools, and called by programs "+
		"in run_code", unknown, strings.Join(s.order, ", "))
}

// maxShownArguments is the maximum size of the arguments in an example, in bytes.
const maxShownArguments = 2 << 10

// howToCall returns an example program that calls a tool with the given arguments, or with the
// types of its parameters.
func howToCall(snapshot *catalog.Snapshot, tool catalog.ToolRef, given json.RawMessage) string {
	usage := snapshot.Usage(tool, "python")
	if usage.Import == "" {
		return fmt.Sprintf("Read get_tool_definition of %q on %q, and write the call in run_code", tool.ToolName,
			tool.ServerID)
	}
	call := usage.Signature
	if function, _, ok := strings.Cut(call, "("); ok && len(given) > len("{}") && len(given) <= maxShownArguments &&
		json.Valid(given) && given[0] == '{' {
		call = function + "(" + inPython(given) + ")"
	}
	return fmt.Sprintf("Call run_code with the language \"python\" and code such as:\n%s\nresult = %s", usage.Import,
		call)
}

var jsonPart = lazyregexp.New(`"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b`)

// inPython converts JSON to a Python literal.
func inPython(raw json.RawMessage) string {
	return jsonPart.ReplaceAllStringFunc(string(raw), func(part string) string {
		switch part {
		case "true":
			return "True"
		case "false":
			return "False"
		case "null":
			return "None"
		}
		return part
	})
}
