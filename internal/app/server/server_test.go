package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/runner"
)

func newServer(t testing.TB) (*Server, *fakeRuns) {
	t.Helper()
	runs := newFakeRuns()
	s, err := New(newFakeTools(t), runs, Options{Version: "test", Principal: "user:ann", ServerIDs: []string{"crm", "files"}})
	if err != nil {
		t.Fatal(err)
	}
	return s, runs
}

// serve starts the server on a pair of pipes; both ends close with the test,
// which fails when Serve does.
func serve(t testing.TB, s *Server) (io.ReadCloser, io.WriteCloser) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(context.WithoutCancel(t.Context()), in, out)
		out.Close()
	}()
	t.Cleanup(func() {
		toServer.Close()
		go io.Copy(io.Discard, fromServer)
		if err := <-served; err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
	})
	return fromServer, toServer
}

// connect returns a client's session in the given revision.
func connect(t testing.TB, s *Server, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	r, w := serve(t, s)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: r, Writer: w}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting in %s: %v", version, err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// versions are the revisions whose clients are served.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// inEveryVersion runs a test once per revision.
func inEveryVersion(t *testing.T, test func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns)) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s, runs := newServer(t)
			session := connect(t, s, version, nil)
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Fatalf("got version %q, want %q", got, version)
			}
			test(t, session, runs)
		})
	}
}

func callTool(t testing.TB, session *mcp.ClientSession, name string, args any) *mcp.CallToolResult {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return res
}

// textOf returns the texts of a result, a line break between them.
func textOf(res *mcp.CallToolResult) string {
	var texts []string
	for _, content := range res.Content {
		texts = append(texts, content.(*mcp.TextContent).Text)
	}
	return strings.Join(texts, "\n")
}

func TestFiveToolsInOrder(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, _ *fakeRuns) {
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tool := range list.Tools {
			got = append(got, fmt.Sprintf("%s readOnly=%v", tool.Name, tool.Annotations.ReadOnlyHint))
		}
		want := []string{"search_tools readOnly=true", "get_tool_definition readOnly=true", "run_code readOnly=false",
			"get_run readOnly=true", "cancel_run readOnly=false"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tools differ (-want +got):\n%s", diff)
		}
	})
}

func TestSearchReadRun(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns) {
		found := callTool(t, session, "search_tools", map[string]any{"query": "contacts", "limit": 1})
		if got := textOf(found); got != `{"tools":[{"serverId":"crm","toolName":"list_contacts","description":"List the contacts of the CRM"}],"missingServers":[{"serverId":"files","problem":"the program npx was not found"}]}` {
			t.Errorf("search_tools: got %s", got)
		}
		read := callTool(t, session, "get_tool_definition", map[string]any{"serverId": "crm", "name": "list_contacts"})
		if got := read.StructuredContent.(map[string]any)["x-extra"]; !cmp.Equal(got, map[string]any{"kept": true}) {
			t.Errorf("get_tool_definition: got x-extra %v, want every field kept", got)
		}
		ran := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "1 < 2", "timeout_seconds": 1.5})
		if ran.IsError || !strings.Contains(textOf(ran), `"result":{"ok":true,"data":"1 < 2"`) {
			t.Errorf("run_code: got %s", textOf(ran))
		}
		req := runs.lastRequest()
		if req.Language != "python" || req.Timeout != 1500*time.Millisecond || req.Principal != "user:ann" || !strings.HasPrefix(req.SessionID, "ses_") {
			t.Errorf("got request %+v, want it to say who asks for what", req)
		}
	})
}

// What is structured is also there as text, for hosts that read only text.
func TestStructuredContentEqualsText(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	for name, args := range map[string]map[string]any{
		"search_tools":        {},
		"get_tool_definition": {"serverId": "crm", "name": "delete_contact"},
		"run_code":            {"language": "node", "code": "x"},
		"get_run":             {"run_id": "run_none"},
		"cancel_run":          {"run_id": "run_none"},
	} {
		res := callTool(t, session, name, args)
		var text any
		if err := json.Unmarshal([]byte(res.Content[0].(*mcp.TextContent).Text), &text); err != nil {
			t.Errorf("%s: the text is not JSON: %v", name, err)
		}
		if diff := cmp.Diff(text, res.StructuredContent); diff != "" {
			t.Errorf("%s: text and structured content differ:\n%s", name, diff)
		}
	}
}

// Every structured answer fits the output schema that the tool promises.
func TestAnswersFitTheirSchemas(t *testing.T) {
	s, runs := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]*schema.Schema{}
	for _, tool := range list.Tools {
		for kind, raw := range map[string]any{"": tool.OutputSchema, "input of ": tool.InputSchema} {
			text, err := json.Marshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			if compiled[kind+tool.Name], err = schema.Compile(text); err != nil {
				t.Fatalf("the schema of the %s%s: %v", kind, tool.Name, err)
			}
		}
	}
	calls := []struct {
		name string
		args map[string]any
	}{
		{"search_tools", map[string]any{"query": "contact", "detail": "name"}},
		{"search_tools", map[string]any{"query": "zzzzzz"}},
		{"get_tool_definition", map[string]any{"serverId": "crm", "name": "delete_contact"}},
		{"run_code", map[string]any{"language": "node", "code": "x"}},
		{"run_code", map[string]any{"language": "node", "code": "fail"}},
		{"run_code", map[string]any{"language": "node", "code": "wait", "background": true}},
		{"get_run", map[string]any{"run_id": "run_background"}},
		{"get_run", map[string]any{"run_id": "run_none"}},
		{"get_run", map[string]any{"run_id": "run_failed"}},
		{"cancel_run", map[string]any{"run_id": "run_background"}},
		{"cancel_run", map[string]any{"run_id": "run_none"}},
	}
	for _, c := range calls {
		args, err := json.Marshal(c.args)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled["input of "+c.name].Validate(args); err != nil {
			t.Errorf("%s %s: the arguments do not fit the input schema: %v", c.name, args, err)
		}
		answer, err := json.Marshal(callTool(t, session, c.name, c.args).StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled[c.name].Validate(answer); err != nil {
			t.Errorf("%s %s: %s does not fit the output schema: %v", c.name, args, answer, err)
		}
	}
	if len(runs.started) != 1 {
		t.Errorf("got %d background runs, want 1", len(runs.started))
	}
}

func TestBadArgumentsAreResults(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	for name, c := range map[string]struct {
		tool string
		args any
		want string
	}{
		"no language":           {"run_code", map[string]any{"code": "x"}, `the argument "language" is missing or empty`},
		"no code":               {"run_code", map[string]any{"language": "python"}, `the argument "code" is missing or empty`},
		"empty code":            {"run_code", map[string]any{"language": "python", "code": ""}, `the argument "code" is missing or empty`},
		"code of another type":  {"run_code", map[string]any{"language": "python", "code": 1}, `the argument "code" must be a string`},
		"null":                  {"run_code", map[string]any{"language": "python", "code": nil}, `the argument "code" must be a string`},
		"a text for a flag":     {"run_code", map[string]any{"language": "python", "code": "x", "background": "yes"}, `the argument "background" must be true or false`},
		"a negative timeout":    {"run_code", map[string]any{"language": "python", "code": "x", "timeout_seconds": -1}, `the argument "timeout_seconds" must be a number above 0`},
		"a zero timeout":        {"run_code", map[string]any{"language": "python", "code": "x", "timeout_seconds": 0}, `the argument "timeout_seconds" must be a number above 0`},
		"an unknown argument":   {"run_code", map[string]any{"lang": "python"}, "there is no argument \"lang\"\nhint: the arguments are background, code, language, timeout_seconds"},
		"a list of arguments":   {"get_run", []any{"run_1"}, "the arguments are not a JSON object\nhint: pass an object with run_id"},
		"no arguments":          {"get_run", nil, `the argument "run_id" is missing or empty`},
		"a limit too large":     {"search_tools", map[string]any{"limit": 1000}, `the argument "limit" must be a whole number from 1 to 200`},
		"a limit in parts":      {"search_tools", map[string]any{"limit": 1.5}, `the argument "limit" must be a whole number from 1 to 200`},
		"an unknown detail":     {"search_tools", map[string]any{"detail": "all"}, `unknown detail "all": use "name" or "name+description"`},
		"an unknown server":     {"search_tools", map[string]any{"serverId": "crn"}, "there is no server \"crn\"\nhint: the servers are crm, files"},
		"a missing server":      {"search_tools", map[string]any{"serverId": "files"}, "the server \"files\" is missing: the program npx was not found\nhint: use the other servers, or tell the user"},
		"an unknown tool":       {"get_tool_definition", map[string]any{"serverId": "crm", "name": "list_contact"}, "server \"crm\" has no tool \"list_contact\"; did you mean \"list_contacts\"?\nhint: search_tools finds the names of servers and tools"},
		"a refused run":         {"run_code", map[string]any{"language": "python", "code": "refuse"}, "the language is unknown\nhint: use python"},
		"a refused start":       {"run_code", map[string]any{"language": "python", "code": "refuse", "background": true}, "the language is unknown\nhint: use python"},
		"a run that went wrong": {"run_code", map[string]any{"language": "python", "code": "break"}, "the sandbox did not start"},
	} {
		t.Run(name, func(t *testing.T) {
			res := callTool(t, session, c.tool, c.args)
			if got := textOf(res); got != c.want || !res.IsError {
				t.Errorf("got %q (isError %v), want %q as an error", got, res.IsError, c.want)
			}
		})
	}
}

func TestFailedRunIsAnError(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "fail"})
	if !res.IsError || !strings.Contains(textOf(res), `"type":"ValueError"`) || res.StructuredContent == nil {
		t.Errorf("got %s (isError %v), want the envelope as an error", textOf(res), res.IsError)
	}
}

func TestHugeCodeIsRefused(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": strings.Repeat("x", 10<<20)})
	if want := "the code is too long\nhint: write less"; !res.IsError || textOf(res) != want {
		t.Errorf("got %q, want %q", textOf(res), want)
	}
}

func TestLongTextIsCutAndSaysSo(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "large"})
	text := textOf(res)
	if len(text) > maxText || !strings.ContainsRune(text, 'ä') || strings.ContainsRune(text, '\uFFFD') ||
		!strings.Contains(text, "[cut here: the answer has 50") || !strings.HasSuffix(text, "inside the program.]") {
		t.Errorf("got %d bytes ending in %q, want at most %d and a note about the cut", len(text), text[max(0, len(text)-200):], maxText)
	}
	data := res.StructuredContent.(map[string]any)["result"].(map[string]any)["data"].(string)
	if len(data) != 50_000 {
		t.Errorf("got %d bytes of data, want all 50000", len(data))
	}
}

func TestBackgroundRun(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns) {
		state := func() any {
			res := callTool(t, session, "get_run", map[string]any{"run_id": "run_background"})
			return res.StructuredContent.(map[string]any)["state"]
		}
		if got := state(); got != "unknown" {
			t.Fatalf("got state %v before the start, want unknown", got)
		}
		res := callTool(t, session, "run_code", map[string]any{"language": "node", "code": "wait", "background": true})
		if diff := cmp.Diff(map[string]any{"run_id": "run_background", "state": "running"}, res.StructuredContent); diff != "" {
			t.Fatalf("run_code differs (-want +got):\n%s", diff)
		}
		if got := state(); got != "running" {
			t.Errorf("got state %v, want running", got)
		}
		runs.finish("run_background")
		if got := state(); got != "done" {
			t.Errorf("got state %v, want done", got)
		}
		res = callTool(t, session, "cancel_run", map[string]any{"run_id": "run_background"})
		if got := res.StructuredContent.(map[string]any)["cancelled"]; got != false {
			t.Errorf("cancelling a finished run: got %v, want false", got)
		}
	})
}

func TestCancelRun(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	callTool(t, session, "run_code", map[string]any{"language": "node", "code": "wait", "background": true})
	for _, want := range []bool{true, false} {
		res := callTool(t, session, "cancel_run", map[string]any{"run_id": "run_background"})
		if got := res.StructuredContent.(map[string]any)["cancelled"]; got != want {
			t.Errorf("got cancelled %v, want %v", got, want)
		}
	}
}

func TestPrintedOutputOfAFinishedRun(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	callTool(t, session, "run_code", map[string]any{"language": "python", "code": "x"})
	res := callTool(t, session, "get_run", map[string]any{"run_id": "run_done"})
	got := res.StructuredContent.(map[string]any)
	if got["stdout"] != "printed <>&\n" || got["state"] != "done" {
		t.Errorf("got %v and state %v, want what was printed", got["stdout"], got["state"])
	}
	if want := "[100 bytes before this are left out]\nxxx"; !strings.HasPrefix(got["stderr"].(string), want) {
		t.Errorf("got stderr %.60q, want it to start with %q", got["stderr"], want)
	}

	other := connect(t, s, "2025-11-25", nil)
	if res := callTool(t, other, "get_run", map[string]any{"run_id": "run_none"}); !strings.Contains(textOf(res), "no such run") {
		t.Errorf("got %q, want it to say that there is no such run", textOf(res))
	}
}

func TestCancellingACallEndsItsRun(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, runs *fakeRuns) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-runs.waiting
			cancel()
		}()
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "python", "code": "wait"}})
		if err == nil {
			t.Error("got a result, want the call cancelled")
		}
		<-runs.ended // blocks for ever when the run goes on
	})
}

func TestTheHostsEndEndsItsRuns(t *testing.T) {
	s, runs := newServer(t)
	in, toServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), in, io.Discard) }()
	send(t, toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	send(t, toServer, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(t, toServer, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"python","code":"wait"}}}`)
	<-runs.waiting
	toServer.Close()
	<-runs.ended
	if err := <-served; err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}

func TestOurOwnEndEndsRuns(t *testing.T) {
	s, runs := newServer(t)
	in, toServer := io.Pipe()
	defer toServer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, in, io.Discard) }()
	send(t, toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	send(t, toServer, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"python","code":"wait"}}}`)
	<-runs.waiting
	cancel()
	<-runs.ended
	if err := <-served; err != context.Canceled {
		t.Errorf("Serve: got %v, want %v", err, context.Canceled)
	}
}

func send(t testing.TB, w io.Writer, line string) {
	t.Helper()
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func TestInstructionsTeachAndFit(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("server-%d", i))
	}
	for name, ids := range map[string][]string{"no server": nil, "two": {"crm", "files"}, "very many": many, "a long name": {strings.Repeat("x", 3000)}} {
		text := instructions(ids)
		if len(text) > maxInstructions {
			t.Errorf("%s: got %d bytes of instructions, want at most %d", name, len(text), maxInstructions)
		}
		search, read, run := strings.Index(text, "search_tools"), strings.Index(text, "get_tool_definition"), strings.Index(text, "run_code")
		if search < 0 || read < search || run < read {
			t.Errorf("%s: got %q, want search, then read, then run", name, text)
		}
	}
	if got := instructions([]string{"crm", "files"}); !strings.HasSuffix(got, "\nServers: crm, files") {
		t.Errorf("got %q, want the servers named at the end", got[len(got)-40:])
	}
	if got := instructions(many); !strings.HasSuffix(got, ", …") {
		t.Errorf("got %q at the end, want a mark that there are more", got[len(got)-40:])
	}
}

func TestPromptHasTheSameRules(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, _ *fakeRuns) {
		got, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "code_mode", Arguments: map[string]string{"task": "count contacts"}})
		if err != nil {
			t.Fatal(err)
		}
		want := instructions(nil) + "\n\nThe task: count contacts"
		if text := got.Messages[0].Content.(*mcp.TextContent).Text; text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	})
}

// No schema of the tools behind is shown before somebody asks for it.
func TestNothingIsPreloaded(t *testing.T) {
	s, _ := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal([]any{list, session.InitializeResult()})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(shown), "delete_contact") {
		t.Errorf("a tool behind Airlock is named before anybody asked: %s", shown)
	}
	found := callTool(t, session, "search_tools", nil)
	if strings.Contains(textOf(found), "inputSchema") {
		t.Errorf("got %s, want no schema in a search", textOf(found))
	}
}

func TestNewWantsAllParts(t *testing.T) {
	tools, runs := newFakeTools(t), newFakeRuns()
	for name, make := range map[string]func() (*Server, error){
		"no tools":     func() (*Server, error) { return New(nil, runs, Options{Principal: "user:ann"}) },
		"no runs":      func() (*Server, error) { return New(tools, nil, Options{Principal: "user:ann"}) },
		"no principal": func() (*Server, error) { return New(tools, runs, Options{}) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s: got a server, want an error", name)
		}
	}
}

func TestRecentForgetsTheOldest(t *testing.T) {
	var r recent
	for i := range maxRecent + 1 {
		o := outcomeOf(fmt.Sprintf("run_%d", i), runner.Result{OK: true})
		r.add("ses_a", o)
	}
	if r.get("ses_a", "run_0") != nil || r.get("ses_a", "run_1") == nil || r.get("ses_b", "run_1") != nil {
		t.Error("want the oldest forgotten, the others kept, and each only for its session")
	}
	large := outcomeOf("run_large", runner.Result{OK: true})
	large.Stdout = strings.Repeat("x", maxRecentBytes)
	r.add("ses_a", large)
	if len(r.kept) != 1 || r.bytes != r.kept[0].size() {
		t.Errorf("got %d kept with %d bytes, want only the newest", len(r.kept), r.bytes)
	}
}

// testdataFiles returns the files of a folder under testdata, at least one.
func testdataFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files for %q (%v), want some", len(files), pattern, err)
	}
	slices.Sort(files)
	return files
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
