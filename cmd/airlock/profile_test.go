package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// A host that names no profile gets the default one: no answer to it, and nothing that its code
// does, shows a tool outside of the profile.
func TestServingKeepsToTheProfile(t *testing.T) {
	servers := filepath.Join(testenv.RepoRoot(t), "test", "servers", "node_modules", "@modelcontextprotocol")
	session := host(t, fmt.Sprintf(`
mcpServers:
  files: {command: node, args: [%q, %q]}
  memory: {command: node, args: [%q]}
servers: {memory: {allow: ["*"]}}
audit: {path: log}
profiles: {reading: {default: true, servers: {files: [read_text_file]}}}
`, filepath.Join(servers, "server-filesystem", "dist", "index.js"), t.TempDir(), filepath.Join(servers, "server-memory", "dist", "index.js")))
	hidden := func(text string) {
		t.Helper()
		if strings.Contains(text, "read_graph") || strings.Contains(text, "write_file") {
			t.Errorf("got %s, want nothing from outside the profile", text)
		}
	}
	if instructions := session.InitializeResult().Instructions; !strings.HasSuffix(instructions, "Servers: files") {
		t.Errorf("got instructions that end with %q, want files alone", instructions[max(0, len(instructions)-40):])
	}
	list, err := session.ListTools(t.Context(), &mcp.ListToolsParams{})
	if err != nil {
		t.Fatal(err)
	}
	if description := list.Tools[0].Description; strings.Contains(description, "memory") {
		t.Errorf("got %q, want nothing of memory", description)
	}
	_, found := call(t, session, "search_tools", map[string]any{"query": "read", "serverId": "files"})
	if !strings.Contains(found, "read_text_file") {
		t.Errorf("got %s, want read_text_file", found)
	}
	hidden(found)
	_, found = call(t, session, "search_tools", map[string]any{"query": "the whole knowledge graph"})
	hidden(found)
	ran, text := call(t, session, "run_code", map[string]any{"language": "python",
		"code": "from client.mcp_client import call_tool\n" +
			"result = (await call_tool('memory', 'read_graph', {}))['error']['type']"})
	if string(ran.Data) != `"UnknownTool"` {
		t.Errorf("a call past the wrappers: got %s", text)
	}
}
