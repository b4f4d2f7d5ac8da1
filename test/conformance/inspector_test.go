package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// inspector is the MCP Inspector's command line in front of `airlock mcp`, with
// a real server from npm behind it.
type inspector struct {
	era     string // "legacy" is 2025-11-25 and older, "modern" 2026-07-28
	node    string
	script  string
	airlock string
	env     []string
}

func newInspector(t *testing.T, era string) inspector {
	t.Helper()
	env := testenv.Sandbox(t)
	dir, node := suites(t)
	root := testenv.RepoRoot(t)
	config := filepath.Join(t.TempDir(), "airlock.yaml")
	everything := filepath.Join(root, "test", "servers", "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	text := fmt.Sprintf("mcpServers: {everything: {command: node, args: [%q]}}\nservers: {everything: {allow: [echo]}}\naudit: {path: audit.jsonl}\n", everything)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return inspector{
		era: era, node: node, airlock: filepath.Join(root, "bin", "airlock"),
		script: filepath.Join(dir, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"),
		// A host hands only a few variables on, so what Airlock needs is named.
		env: []string{"-e", "AIRLOCK_CONFIG=" + config, "-e", "AIRLOCK_HOME=" + env.Home, "-e", "AIRLOCK_RUNSC=" + env.Runsc, "-e", "PATH=" + os.Getenv("PATH")},
	}
}

// do runs one method and decodes its result.
func (i inspector) do(t *testing.T, into any, args ...string) {
	t.Helper()
	args = append(append([]string{i.script, "--cli", "--protocol-era", i.era, "--format", "json", "--quiet"}, i.env...), args...)
	command := exec.CommandContext(t.Context(), i.node, append(args, i.airlock, "mcp")...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("the inspector ended with %v\n%s%s", err, out, stderr.String())
	}
	answer := struct {
		Result any `json:"result"`
	}{into}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("reading the inspector's answer: %v\n%s", err, out)
	}
}

// call calls one tool and returns its structured content.
func (i inspector) call(t *testing.T, tool string, args map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		StructuredContent map[string]any `json:"structuredContent"`
	}
	i.do(t, &result, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", string(text))
	return result.StructuredContent
}

func TestInspector(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			i := newInspector(t, era)
			t.Run("lists five tools with portable schemas", i.testList)
			t.Run("searches", i.testSearch)
			t.Run("fetches a definition", i.testDefinition)
			t.Run("runs code that calls a server", i.testRun)
		})
	}
}

func (i inspector) testList(t *testing.T) {
	var list struct {
		Tools []struct{ Name string } `json:"tools"`
	}
	i.do(t, &list, "--method", "tools/list", "--strict")
	var got []string
	for _, tool := range list.Tools {
		got = append(got, tool.Name)
	}
	if diff := cmp.Diff([]string{"search_tools", "get_tool_definition", "run_code", "get_run", "cancel_run"}, got); diff != "" {
		t.Errorf("tools differ (-want +got):\n%s", diff)
	}
}

func (i inspector) testSearch(t *testing.T) {
	got := i.call(t, "search_tools", map[string]any{"query": "echo", "limit": 1, "detail": "name"})
	want := map[string]any{"total": 1.0, "tools": []any{map[string]any{
		"serverId": "everything", "toolName": "echo", "import": "from servers.everything import echo", "signature": "await echo({message: str})",
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("search differs (-want +got):\n%s", diff)
	}
}

func (i inspector) testDefinition(t *testing.T) {
	got := i.call(t, "get_tool_definition", map[string]any{"serverId": "everything", "name": "echo"})
	schema, _ := got["inputSchema"].(map[string]any)
	if diff := cmp.Diff([]any{"message"}, schema["required"]); got["name"] != "echo" || diff != "" {
		t.Errorf("got %v, want the definition of echo", got)
	}
}

func (i inspector) testRun(t *testing.T) {
	for language, code := range map[string]string{
		"python": "from servers.everything import echo\nresult = (await echo({'message': 'hi'})).data",
		"node":   "import { echo } from './servers/everything/index.js';\nglobalThis.result = (await echo({ message: 'hi' })).data;",
	} {
		got := i.call(t, "run_code", map[string]any{"language": language, "code": code})
		if got["ok"] != true || got["data"] != "Echo: hi" {
			t.Errorf("%s: got %v, want the answer of the server", language, got)
		}
	}
}
