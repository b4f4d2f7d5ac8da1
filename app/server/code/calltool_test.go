package code

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
)

// newCallServer returns a server that offers call_tool.
func newCallServer(t *testing.T) (*Server, *fakeRuns) {
	t.Helper()
	runs := newFakeRuns()
	s, err := New(newFakeTools(t), runs, Options{Version: "test", Principal: "user:ann", CallTool: true})
	if err != nil {
		t.Fatal(err)
	}
	return s, runs
}

func TestCallToolIsOfferedWhereItIsWanted(t *testing.T) {
	for want, make := range map[int]func() *Server{5: func() *Server { s, _ := newServer(t); return s },
		6: func() *Server { s, _ := newCallServer(t); return s }} {
		session := connect(t, make(), "2025-11-25", nil)
		list, err := session.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != want {
			t.Errorf("got %d tools and %v, want %d", len(list.Tools), err, want)
		}
		if last := list.Tools[len(list.Tools)-1]; (last.Name == nameCallTool) != (want == 6) {
			t.Errorf("of %d tools the last is %s", want, last.Name)
		}
	}
}

// All common spellings of a call by models lead to the run of that call.
func TestCallToolMakesARun(t *testing.T) {
	s, runs := newCallServer(t)
	session := connect(t, s, "2025-11-25", nil)
	const want = `{"server":"crm","tool":"list_contacts","arguments":{"limit":5}}`
	for _, given := range []string{
		want,
		`{"serverId":"crm","toolName":"list_contacts","arguments":{"limit":5}}`,
		`{"server_id":"CRM","name":"listContacts","args":{"limit":5}}`,
		`{"tool":"crm.list_contacts","arguments":{"limit":5}}`,
		`{"tool":"mcp__crm__list_contacts","params":{"limit":5}}`,
		`{"tool":"list_contacts","arguments":"{\"limit\":5}"}`,
	} {
		res := callTool(t, session, nameCallTool, json.RawMessage(given))
		if got := string(runs.lastRequest().Code); res.IsError || got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
		if req := runs.lastRequest(); req.Language != orchestrator.LanguageCall || req.Call == nil ||
			!req.PreviewLarge {
			t.Errorf("%s: got %+v", given, req)
		}
	}
	for given, hint := range map[string]string{
		`{"server":"crm"}`: "tool", `{"tool":"nothing_like_it"}`: "search_tools",
		`{"tool":"list_contacts","arguments":[1]}`:  "must be an object",
		`{"tool":"list_contacts","arguments":"no"}`: "must be an object",
		`{"tool":"list_contacts","limit":5}`:        "the arguments are",
	} {
		res := callTool(t, session, nameCallTool, json.RawMessage(given))
		if text := res.Content[0].(*mcp.TextContent).Text; !res.IsError || !strings.Contains(text, hint) {
			t.Errorf("%s: got %q, want %q in it", given, text, hint)
		}
	}
}
