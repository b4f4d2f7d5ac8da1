package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// runState is what get_run answers, and run_code.
type runState struct {
	RunID     string `json:"run_id"`
	State     string
	OK        bool
	Data      json.RawMessage
	Error     struct{ Type string }
	Stdout    string
	Suspended string `json:"suspended_since"`
	Waiting   []struct {
		ID                         string `json:"question_id"`
		ServerID, ToolName, Answer string
	}
}

// call calls one of Airlock's tools and decodes what it answers.
func call(t *testing.T, session *mcp.ClientSession, tool string, args map[string]any) (answer runState, text string) {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range res.Content {
		text += content.(*mcp.TextContent).Text + "\n"
	}
	structured, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(structured, &answer); err != nil {
		t.Fatalf("%s: %v in %s, %s", tool, err, structured, text)
	}
	return answer, text
}

// until asks for a run until it is as wanted.
func until(t *testing.T, session *mcp.ClientSession, id string, wanted func(runState) bool) (runState, string) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		answer, text := call(t, session, "get_run", map[string]any{"run_id": id})
		if wanted(answer) || answer.State == "done" {
			return answer, text
		}
		if time.Since(begun) > hangs {
			t.Fatalf("the run is still %s: %s", answer.State, text)
		}
	}
}

// A run in the background shows its output and the question it waits for, and
// may take longer than one that is waited for.
func TestBackgroundRunsShowWhatTheyDo(t *testing.T) {
	dir := t.TempDir()
	server := filepath.Join(testenv.RepoRoot(t), "test", "servers", "node_modules", "@modelcontextprotocol",
		"server-filesystem", "dist", "index.js")
	session := host(t, fmt.Sprintf(`
mcpServers: {files: {command: node, args: [%q, %q]}}
sandbox: {timeout: 2s, backgroundTimeout: 1m}
audit: {path: audit.jsonl}
`, server, dir))
	background := func(code string) string {
		t.Helper()
		started, text := call(t, session, "run_code",
			map[string]any{"language": "py", "code": code, "background": true})
		if started.State != "queued" && started.State != "running" {
			t.Fatalf("got %+v, %s, want a run in the background", started, text)
		}
		return started.RunID
	}

	id := background("print('step one')\nfrom servers.files import create_directory\n" +
		fmt.Sprintf("await create_directory({'path': %q})\nresult = 1", filepath.Join(dir, "new")))
	got, text := until(t, session, id, func(r runState) bool { return len(r.Waiting) > 0 })
	if got.Stdout != "step one\n" || len(got.Waiting) != 1 || got.Waiting[0].ToolName != "create_directory" ||
		!strings.Contains(got.Waiting[0].Answer, "airlock approvals") ||
		!strings.Contains(text, "waiting for a person to allow files.create_directory") {
		t.Errorf("got %+v, %s, want the output so far and the question", got, text)
	}
	call(t, session, "cancel_run", map[string]any{"run_id": id})
	if got, text := until(t, session, id, func(runState) bool { return false }); got.OK || got.Error.Type != "Killed" ||
		got.Stdout != "step one\n" || len(got.Waiting) > 0 {
		t.Errorf("got %+v, %s, want the run cancelled, its output kept", got, text)
	}

	const slow = "import time\nfor i in range(4):\n    print('second', i)\n    time.sleep(1)\nresult = 'in time'"
	if got, text := until(t, session, background(slow), func(runState) bool { return false }); !got.OK ||
		string(got.Data) != `"in time"` {
		t.Errorf("in the background: got %+v, %s, want a result after more than 2 s", got, text)
	}
	if got, text := call(t, session, "run_code", map[string]any{"language": "python",
		"code": slow}); got.Error.Type != "Timeout" {
		t.Errorf("waited for: got %+v, %s, want Timeout after 2 s", got, text)
	}
}
