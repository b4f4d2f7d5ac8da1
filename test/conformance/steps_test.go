package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// TestClients has every client take every step: real clients of the protocol in front
// of all of Airlock, with real sandboxes and a server behind it.
func TestClients(t *testing.T) {
	dir, node := suites(t)
	python := pythonClient(t)
	scripts := filepath.Join(dir, "clients")
	typescript := func(t *testing.T, to how) client {
		return startScripted(t, to, nil, node, filepath.Join(scripts, "typescript.mjs"))
	}
	clients := []struct {
		name, era string
		start     func(*testing.T, how) client
	}{
		{"typescript1", legacy, typescript},
		{"typescript2", legacy, typescript},
		{"typescript2", modern, typescript},
		{"python2", legacy, func(t *testing.T, to how) client {
			return startScripted(t, to, []string{"PYTHONPATH=" + python}, "python3",
				filepath.Join(scripts, "python.py"))
		}},
		{"python2", modern, func(t *testing.T, to how) client {
			return startScripted(t, to, []string{"PYTHONPATH=" + python}, "python3",
				filepath.Join(scripts, "python.py"))
		}},
		{"go", legacy, startGo},
		{"go", modern, startGo},
	}
	url := overHTTP(t, configuration(t))
	env := testenv.Sandbox(t)
	for _, c := range clients {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(fmt.Sprintf("%s/%s/%s", c.name, c.era, transport), func(t *testing.T) {
				t.Parallel()
				to := how{SDK: c.name, Era: c.era}
				if transport == "http" {
					to.URL = url
				} else {
					to.Command, to.Args = filepath.Join(testenv.RepoRoot(t), "bin", "airlock"), []string{"mcp"}
					to.Env = map[string]string{
						"AIRLOCK_CONFIG": configuration(t), "AIRLOCK_HOME": testenv.NewHome(t, env),
						"AIRLOCK_RUNSC": env.Runsc,
						"PATH":          os.Getenv("PATH"), "HOME": os.Getenv("HOME"),
					}
				}
				takeSteps(t, c.start(t, to), c.era)
			})
		}
	}
}

// configuration writes one with a server whose tool echo runs at once, and whose tool
// count needs a person.
func configuration(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "airlock.yaml")
	text := testenv.WithoutPool(fmt.Sprintf(
		"mcpServers: {good: {command: %q}}\nservers: {good: {allow: [echo]}}\naudit: {path: audit.jsonl}\n",
		upstreamtest.Program(t)))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// steps are what every client does, in this order.
var steps = []struct {
	name string
	take func(*walk, *testing.T)
}{
	{"it connects in its era", (*walk).connects},
	{"it lists five tools", (*walk).lists},
	{"it searches", (*walk).searches},
	{"it reads a definition", (*walk).defines},
	{"it runs Python and JavaScript that call a tool", (*walk).runs},
	{"it runs in the background and asks for the outcome", (*walk).runsInBackground},
	{"it cancels a run", (*walk).cancelsRun},
	{"it hears of progress", (*walk).hearsProgress},
	{"it cancels its request", (*walk).cancelsRequest},
	{"its person accepts", (*walk).accepts},
	{"its person declines", (*walk).declines},
	{"its person closes the form", (*walk).closes},
	{"it is told what was wrong", (*walk).isTold},
}

func takeSteps(t *testing.T, c client, era string) {
	w := &walk{client: c, era: era, outputs: map[string]*schema.Schema{}}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) { step.take(w, t) })
	}
}

// walk is one client's way through the steps.
type walk struct {
	client  client
	era     string
	outputs map[string]*schema.Schema // by tool
}

// calls calls a tool and decodes its structured content, which is checked against the
// tool's schema here, too: not every client does that.
func (w *walk) calls(t *testing.T, c toolCall, into any) outcome {
	t.Helper()
	got := w.client.call(t, c)
	if got.Error != nil || got.Result == nil || got.Result.StructuredContent == nil {
		t.Fatalf("%s: got %+v, %s", c.Tool, got.Error, got.text())
	}
	if err := w.outputs[c.Tool].Validate(got.Result.StructuredContent); err != nil {
		t.Errorf("%s: the result is not of the tool's outputSchema: %v\n%s", c.Tool, err, got.Result.StructuredContent)
	}
	if err := json.Unmarshal(got.Result.StructuredContent, into); err != nil {
		t.Fatalf("%s: got %s: %v", c.Tool, got.Result.StructuredContent, err)
	}
	return got
}

// ran is what run_code and get_run answer.
type ran struct {
	RunID string          `json:"run_id"`
	State string          `json:"state"`
	OK    bool            `json:"ok"`
	Data  json.RawMessage `json:"data"`
	Error struct{ Type, Message, Source string }
}

func (w *walk) run(t *testing.T, language, code string, more toolCall) (ran, outcome) {
	t.Helper()
	more.Tool = "run_code"
	more.Arguments = merged(more.Arguments, map[string]any{"language": language, "code": code})
	var got ran
	o := w.calls(t, more, &got)
	return got, o
}

func merged(a, b map[string]any) map[string]any {
	all := map[string]any{}
	for _, m := range []map[string]any{a, b} {
		maps.Copy(all, m)
	}
	return all
}

func (w *walk) connects(t *testing.T) {
	got := w.client.hello()
	want := map[string]string{legacy: "2025-11-25", modern: "2026-07-28"}[w.era]
	if got.Version != want || got.Server != "airlock" || !strings.Contains(got.Instructions, "search_tools") ||
		!strings.Contains(got.Instructions, "good") {
		t.Errorf("got %+v, want revision %s of airlock, with instructions that name the server", got, want)
	}
}

func (w *walk) lists(t *testing.T) {
	var names []string
	for _, tool := range w.client.list(t) {
		names = append(names, tool.Name)
		compiled, err := schema.Compile(tool.OutputSchema)
		if err != nil {
			t.Fatalf("the outputSchema of %s: %v", tool.Name, err)
		}
		w.outputs[tool.Name] = compiled
	}
	if diff := cmp.Diff(fiveTools, names); diff != "" {
		t.Fatalf("tools differ (-want +got):\n%s", diff)
	}
}

func (w *walk) searches(t *testing.T) {
	var got struct {
		Total int `json:"total"`
		Tools []struct {
			ServerID, ToolName, Import, Signature string
		} `json:"tools"`
	}
	w.calls(t, toolCall{Tool: "search_tools", Arguments: map[string]any{"query": "returns its arguments",
		"language": "node"}}, &got)
	if len(got.Tools) == 0 || got.Tools[0].ToolName != "echo" || got.Tools[0].ServerID != "good" ||
		!strings.Contains(got.Tools[0].Import, "./servers/good/") || got.Total < 1 {
		t.Errorf("got %+v, want echo first, with its import", got)
	}
}

func (w *walk) defines(t *testing.T) {
	var got struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations struct {
			ReadOnlyHint bool `json:"readOnlyHint"`
		} `json:"annotations"`
	}
	w.calls(t, toolCall{Tool: "get_tool_definition", Arguments: map[string]any{"serverId": "good", "name": "echo"}},
		&got)
	if got.Name != "echo" || string(got.InputSchema) == "" || !got.Annotations.ReadOnlyHint {
		t.Errorf("got %+v, want the whole definition of echo", got)
	}
}

func (w *walk) runs(t *testing.T) {
	for language, code := range map[string]string{
		"python": "from servers.good import echo\nresult = (await echo({'text': 'hi'})).structured_content['got']",
		"node": "import { echo } from './servers/good/index.js';\nglobalThis.result = (await echo({ text: 'hi' " +
			"})).structuredContent.got;",
	} {
		var got struct {
			OK   bool
			Data map[string]any
		}
		w.calls(t, toolCall{Tool: "run_code", Arguments: map[string]any{"language": language, "code": code}}, &got)
		if !got.OK || got.Data["text"] != "hi" {
			t.Errorf("%s: got %+v, want what echo answers", language, got)
		}
	}
}

// outcomeOf asks for a run until it is done.
func (w *walk) outcomeOf(t *testing.T, runID string) (got ran) {
	t.Helper()
	testenv.Await(t, "the run is done", func() bool {
		got = ran{}
		w.calls(t, toolCall{Tool: "get_run", Arguments: map[string]any{"run_id": runID}}, &got)
		return got.State != "queued" && got.State != "running"
	})
	return got
}

func (w *walk) runsInBackground(t *testing.T) {
	started, _ := w.run(t, "python", "result = 6 * 7", toolCall{Arguments: map[string]any{"background": true}})
	if !slices.Contains([]string{"queued", "running", "done"}, started.State) {
		t.Fatalf("got %+v, want a run in the background", started)
	}
	if got := w.outcomeOf(t, started.RunID); got.State != "done" || !got.OK || string(got.Data) != "42" {
		t.Errorf("got %+v, want 42", got)
	}
}

func (w *walk) cancelsRun(t *testing.T) {
	started, _ := w.run(t, "python", "import time\ntime.sleep(600)",
		toolCall{Arguments: map[string]any{"background": true}})
	var cancelled struct{ Cancelled bool }
	w.calls(t, toolCall{Tool: "cancel_run", Arguments: map[string]any{"run_id": started.RunID}}, &cancelled)
	// A run that was cancelled before it had begun has no result at all.
	for {
		o := w.client.call(t, toolCall{Tool: "get_run", Arguments: map[string]any{"run_id": started.RunID}})
		if o.Result == nil {
			t.Fatalf("get_run: got %+v", o.Error)
		}
		var got ran
		if len(o.Result.StructuredContent) > 0 && json.Unmarshal(o.Result.StructuredContent, &got) == nil &&
			(got.State == "queued" || got.State == "running") {
			continue
		}
		if !cancelled.Cancelled || !strings.Contains(o.text(), "cancelled") {
			t.Errorf("got %+v and %s, want a run that was cancelled", cancelled, o.text())
		}
		return
	}
}

// A run of more than a second, because progress is sent every second.
const takesAWhile = "import time\ntime.sleep(1.5)\nresult = 1"

func (w *walk) hearsProgress(t *testing.T) {
	got, o := w.run(t, "python", takesAWhile, toolCall{Progress: true})
	if !got.OK || len(o.Progress) == 0 || o.Progress[0] == "" {
		t.Errorf("got %+v with progress %q, want to hear of it", got, o.Progress)
	}
}

func (w *walk) cancelsRequest(t *testing.T) {
	o := w.client.call(t, toolCall{Tool: "run_code",
		Arguments: map[string]any{"language": "python", "code": "import time\ntime.sleep(600)"}, Cancel: true})
	if o.Error == nil {
		t.Fatalf("got %s, want the call to be cancelled", o.text())
	}
	if got, _ := w.run(t, "python", "result = 2", toolCall{}); !got.OK || string(got.Data) != "2" {
		t.Errorf("afterwards: got %+v, want 2", got)
	}
}

// counts calls a tool that needs a person.
const counts = "from servers.good import count\nresult = (await count({})).data"

func (w *walk) accepts(t *testing.T) {
	got, o := w.run(t, "python", counts,
		toolCall{Answer: &reply{Action: "accept", Content: map[string]any{"decision": "approve this call"}}})
	if !got.OK || len(o.Asked) != 1 || !strings.Contains(o.Asked[0], "count") || !strings.Contains(o.Asked[0], "good") {
		t.Errorf("got %+v after the questions %q, want one that names server and tool", got, o.Asked)
	}
}

func (w *walk) declines(t *testing.T) {
	got, o := w.run(t, "python", counts, toolCall{Answer: &reply{Action: "decline"}})
	if got.OK || len(o.Asked) != 1 || got.Error.Type != "ApprovalDenied" {
		t.Errorf("got %+v after %q, want a refusal", got, o.Asked)
	}
}

// Closing a form does not decline it.
func (w *walk) closes(t *testing.T) {
	got, o := w.run(t, "python", counts, toolCall{Answer: &reply{Action: "cancel"}})
	if got.OK || len(o.Asked) != 1 || got.Error.Type == "ApprovalDenied" {
		t.Errorf("got %+v after %q, want no refusal and no approval", got, o.Asked)
	}
}

func (w *walk) isTold(t *testing.T) {
	if o := w.client.call(t, toolCall{Tool: "no_such_tool"}); o.Error == nil && !o.Result.IsError {
		t.Errorf("an unknown tool: got %s, want an error", o.text())
	}
	if o := w.client.call(t, toolCall{Tool: "get_run", Arguments: map[string]any{}}); o.Result == nil ||
		!o.Result.IsError || !strings.Contains(o.text(), "run_id") {
		t.Errorf("a missing argument: got %+v %s, want a result that names it", o.Error, o.text())
	}
	if o := w.client.call(t, toolCall{Tool: "get_tool_definition",
		Arguments: map[string]any{"serverId": "good", "name": "ecco"}}); o.Result == nil || !o.Result.IsError ||
		!strings.Contains(o.text(), "echo") {
		t.Errorf("a misspelt tool: got %+v %s, want a result that names the right one", o.Error, o.text())
	}
	o := w.client.call(t, toolCall{Tool: "run_code", Arguments: map[string]any{"language": "python", "code": "1 / 0"}})
	var got ran
	if o.Result == nil || json.Unmarshal(o.Result.StructuredContent, &got) != nil || got.OK ||
		!strings.Contains(got.Error.Message, "division") {
		t.Errorf("a program that fails: got %+v %s, want its error", o.Error, o.text())
	}
}
