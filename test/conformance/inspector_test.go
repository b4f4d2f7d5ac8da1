package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// inspector is the MCP Inspector's command line in front of `airlock mcp`, with
// a real server from npm behind it.
type inspector struct {
	era    string
	node   string
	script string
	target []string // the server that it connects to
	env    []string
}

// newInspector has the sixth tool in the newer era.
func newInspector(t *testing.T, era string) inspector {
	t.Helper()
	env := testenv.Sandbox(t)
	dir, node := suites(t)
	root := testenv.RepoRoot(t)
	config := configuration(t)
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "face: {callTool: %t}\n", era == modern)
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return inspector{
		era: era, node: node, target: []string{filepath.Join(root, "bin", "airlock"), "mcp"},
		script: filepath.Join(dir, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build",
			"index.js"),
		// A host hands only a few variables on, so what Airlock needs is named.
		env: []string{"-e", "AIRLOCK_CONFIG=" + config, "-e", "AIRLOCK_HOME=" + testenv.NewHome(t, env), "-e",
			"AIRLOCK_RUNSC=" + env.Runsc, "-e", "PATH=" + os.Getenv("PATH")},
	}
}

// start runs one method and returns what it prints.
func (i inspector) start(t *testing.T, args ...string) (stdout, stderr []byte, err error) {
	t.Helper()
	args = append(append([]string{i.script, "--cli", "--protocol-era", i.era, "--format", "json", "--quiet"}, i.env...),
		args...)
	command := exec.CommandContext(t.Context(), i.node, append(args, i.target...)...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	return out, said.Bytes(), err
}

// do runs one method and decodes its result.
func (i inspector) do(t *testing.T, into any, args ...string) {
	t.Helper()
	out, said, err := i.start(t, args...)
	if err != nil {
		t.Fatalf("the inspector ended with %v\n%s%s", err, out, said)
	}
	answer := struct {
		Result   any               `json:"result"`
		Findings []json.RawMessage `json:"schemaFindings"`
	}{Result: into}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("reading the inspector's answer: %v\n%s", err, out)
	}
	// --strict ends with an error for its errors alone; it also warns.
	if len(answer.Findings) > 0 {
		t.Errorf("the inspector finds in the schemas: %s", answer.Findings)
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
	suites(t)
	for _, era := range []string{legacy, modern} {
		t.Run(era, func(t *testing.T) {
			i := newInspector(t, era)
			t.Run("lists tools with portable schemas", i.testList)
			t.Run("searches", i.testSearch)
			t.Run("fetches a definition", i.testDefinition)
			t.Run("runs code that calls a server", i.testRun)
			t.Run("shows what was wrong", i.testError)
			i.target, i.env = []string{overHTTP(t, configuration(t))}, nil
			t.Run("lists tools over HTTP", func(t *testing.T) { i.lists(t, fiveTools) })
		})
	}
}

var fiveTools = []string{"search_tools", "get_tool_definition", "run_code", "get_run", "cancel_run"}

func (i inspector) testList(t *testing.T) {
	want := fiveTools
	if i.era == modern {
		want = append(slices.Clone(want), "call_tool")
	}
	i.lists(t, want)
}

func (i inspector) lists(t *testing.T, want []string) {
	var list struct {
		Tools []struct{ Name string } `json:"tools"`
	}
	i.do(t, &list, "--method", "tools/list", "--strict")
	var got []string
	for _, tool := range list.Tools {
		got = append(got, tool.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools differ (-want +got):\n%s", diff)
	}
}

func (i inspector) testError(t *testing.T) {
	out, said, err := i.start(t, "--method", "tools/call", "--tool-name", "get_run", "--tool-args-json", "{}")
	if shown := string(out) + string(said); !strings.Contains(shown, "run_id") || err == nil &&
		!strings.Contains(shown, `"isError":true`) {
		t.Errorf("got %v and %s, want an error that names the missing argument", err, shown)
	}
}

func (i inspector) testSearch(t *testing.T) {
	got := i.call(t, "search_tools", map[string]any{"query": "echo", "limit": 1, "detail": "name"})
	tools, _ := got["tools"].([]any)
	if len(tools) != 1 {
		t.Fatalf("got %v, want one tool", got)
	}
	first, _ := tools[0].(map[string]any)
	if first["toolName"] != "echo" || first["import"] != "from servers.good import echo" {
		t.Errorf("got %v, want echo and its import", first)
	}
}

func (i inspector) testDefinition(t *testing.T) {
	got := i.call(t, "get_tool_definition", map[string]any{"serverId": "good", "name": "echo"})
	if _, ok := got["inputSchema"].(map[string]any); !ok || got["name"] != "echo" || got["title"] != "Echo" {
		t.Errorf("got %v, want the definition of echo", got)
	}
}

func (i inspector) testRun(t *testing.T) {
	for language, code := range map[string]string{
		"python": "from servers.good import echo\nresult = (await echo({'text': 'hi'})).structured_content['got']",
		"node": "import { echo } from './servers/good/index.js';\nglobalThis.result = (await echo({ text: 'hi' " +
			"})).structuredContent.got;",
	} {
		got := i.call(t, "run_code", map[string]any{"language": language, "code": code})
		if diff := cmp.Diff(map[string]any{"text": "hi"}, got["data"]); got["ok"] != true || diff != "" {
			t.Errorf("%s: got %v, want the answer of the server", language, got)
		}
	}
}
