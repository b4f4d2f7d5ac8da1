package code

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
		if got := textOf(found); got != `{"tools":[{"serverId":"crm","toolName":"list_contacts","description":"List `+
			`the contacts of the CRM"}],"total":2,"missingServers":[{"serverId":"files","problem":"the program npx `+
			`was not found"}]}` {
			t.Errorf("search_tools: got %s", got)
		}
		read := callTool(t, session, "get_tool_definition", map[string]any{"serverId": "crm", "name": "list_contacts"})
		if got := read.StructuredContent.(map[string]any)["x-extra"]; !cmp.Equal(got, map[string]any{"kept": true}) {
			t.Errorf("get_tool_definition: got x-extra %v, want every field kept", got)
		}
		ran := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "1 < 2",
			"timeout_seconds": 1.5})
		if ran.IsError || !strings.Contains(textOf(ran), "1 < 2\nstdout:\nprinted <>&\nstderr:") {
			t.Errorf("run_code: got %s", textOf(ran))
		}
		req := runs.lastRequest()
		if req.Language != "python" || req.Timeout != 1500*time.Millisecond || req.Caller.Principal != "user:ann" ||
			!strings.HasPrefix(req.Caller.Session, "ses_") {
			t.Errorf("got request %+v, want it to say who asks for what", req)
		}
	})
}

// Issue 30: the instructions deny a network only if code has none.
func TestInstructionsKnowTheNetwork(t *testing.T) {
	for _, network := range []bool{false, true} {
		s := &Server{upstream: func() []string { return nil }, network: network}
		if got := strings.Contains(s.instructions(), withoutNetwork); got == network {
			t.Errorf("network %t: the instructions deny one: %t", network, got)
		}
		if got := strings.Contains(s.instructions(), withNetwork); got != network {
			t.Errorf("network %t: the instructions mention hosts: %t", network, got)
		}
	}
}

func TestInstructionsTeachAndFit(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("server-%d", i))
	}
	for name, ids := range map[string][]string{"no server": nil, "two": {"crm", "files"}, "very many": many,
		"a long name": {strings.Repeat("x", 3000)}} {
		text := instructions(ids)
		if len(text) > maxInstructions {
			t.Errorf("%s: got %d bytes of instructions, want at most %d", name, len(text), maxInstructions)
		}
		search, read, run := strings.Index(text, "search_tools"), strings.Index(text, "get_tool_definition"),
			strings.Index(text, "run_code")
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

// The definition of search_tools lists the connected servers. The token figures count the same
// text that a model is shown.
func TestSearchNamesTheServers(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, _ *fakeRuns) {
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := list.Tools[0].Description
		if list.Tools[0].Name != nameSearchTools || !strings.Contains(got, "one capability per search") ||
			!strings.HasSuffix(got, " Servers: crm, files.") {
			t.Errorf("%s says %q, want one capability per search, and the servers", list.Tools[0].Name, got)
		}
		definitions, _, err := ShownTools([]string{"crm", "files"})
		if err != nil {
			t.Fatal(err)
		}
		if quoted, _ := json.Marshal(got); !strings.Contains(definitions[0], string(quoted)) {
			t.Errorf("counted is %q, which lacks %s", definitions[0], quoted)
		}
	})
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("server-%d", i))
	}
	if line := serversLine(many); len(line) > maxServersLine+30 || !strings.HasSuffix(line, "… (300 in all).") {
		t.Errorf("got %d bytes %q, want them cut and counted", len(line), line)
	}
}

func TestPromptHasTheSameRules(t *testing.T) {
	inEveryVersion(t, func(t *testing.T, session *mcp.ClientSession, _ *fakeRuns) {
		got, err := session.GetPrompt(t.Context(),
			&mcp.GetPromptParams{Name: "code_mode", Arguments: map[string]string{"task": "count contacts"}})
		if err != nil {
			t.Fatal(err)
		}
		want := instructions(nil) + "\n\nThe task: count contacts"
		if text := got.Messages[0].Content.(*mcp.TextContent).Text; text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	})
}

// Schemas of upstream tools are shown only on request.
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

// BenchmarkRunCode measures the overhead of the face: a round trip over stdio with a run that takes
// no time.
func BenchmarkRunCode(b *testing.B) {
	s, _ := newServer(b)
	session := connect(b, s, "2025-11-25", nil)
	for b.Loop() {
		callTool(b, session, "run_code", map[string]any{"language": "python", "code": "result = 1"})
	}
}
