package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Issue 24: SQL that a supervised agent is denied when it announces it is denied on every path: in a direct call, in a
// call of code and in an action of the kernel, although neither the tool nor the argument is named after SQL. What
// it may announce, it may do.
func TestAnAgentCannotDoByAnotherName(t *testing.T) {
	i := newInstallation(t, `agents: {rate: 100000/m}
face: {callTool: true}
kernel: {actions: {find: {server: files, tool: search_files, sql: pattern}}}
`, "python")
	if err := os.WriteFile(i.dir+"/SELECT 1", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	url := i.serve()
	id, token := i.agent("Renamer", "--allowed-tool", "files/search_files")
	code := i.converse(url, token)
	kernel := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	ofKernel, err := kernel.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/kernel/mcp",
		HTTPClient: &http.Client{Transport: agentToken(token)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ofKernel.Close()

	for step, c := range []struct {
		pattern string
		denied  bool
	}{
		{"SELECT 1", false},
		{"DELETE FROM users", true},
		{"UPDATE users SET admin = 1 WHERE id = 7", true},
		{`{"q": "DROP TABLE users"}`, true},
		{"REVMRVRFIEZST00gdXNlcnM=", true}, // base64 of DELETE FROM users
		{"rm -rf /srv/data", true},
		{"create user bob", true}, // is only found in an argument for SQL
	} {
		arguments := map[string]any{"path": i.dir, "pattern": c.pattern}
		raw, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		announced := i.announce(url, id, token, fmt.Sprintf(`{"type": "files/search_files", "parameters": %s}`, raw),
			fmt.Sprint(step+1)).Decision
		called, _ := code.try("call_tool", map[string]any{"server": "files", "tool": "search_files",
			"arguments": arguments})
		ran, _ := code.try("run_code",
			python(fmt.Sprintf("import json\nfrom servers import files\nresult = await "+
				"files.search_files(json.loads(%q))", raw)))
		executed, err := ofKernel.CallTool(t.Context(),
			&mcp.CallToolParams{Name: "kernel_execute", Arguments: map[string]any{
				"action": "find", "agent_id": id, "params": arguments, "policies": []string{},
			}})
		if err != nil {
			t.Fatal(err)
		}
		text := executed.Content[0].(*mcp.TextContent).Text
		for path, denied := range map[string]bool{
			"verify_action":  announced == "DENIED",
			"call_tool":      strings.HasPrefix(called, "PolicyDenied QWED-AGENT-POLICY-001"),
			"run_code":       strings.HasPrefix(ran, "PolicyDenied QWED-AGENT-POLICY-001"),
			"kernel_execute": strings.Contains(text, "QWED-AGENT-POLICY-001"),
		} {
			if denied != c.denied {
				t.Errorf("%s of %q: denied is %t, want %t (%s, %q, %q, %s)", path, c.pattern, denied, c.denied,
					announced, called, ran, text)
			}
		}
	}
}
