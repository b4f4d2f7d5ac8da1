package code

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/catalog"
)

// Issue 31: a prompt that two servers have is reached by its name with that of the server, and not by its name alone.
func TestPromptsOfTwoServersWithOneName(t *testing.T) {
	var servers []catalog.Server
	for _, id := range []string{"crm", "wiki"} {
		prompts, warnings := catalog.ParseFeatures(id, catalog.KindPrompt, []json.RawMessage{
			json.RawMessage(`{"name":"summary"}`), json.RawMessage(`{"name":"only_` + id + `"}`)})
		if len(warnings) > 0 {
			t.Fatal(warnings)
		}
		servers = append(servers, catalog.Server{ID: id, Features: prompts})
	}
	s, runs := newAppServer(t, servers...)
	runs.answer = func(req orchestrator.Request) orchestrator.Result {
		return orchestrator.Result{OK: true, Data: json.RawMessage(`{"messages":[{"role":"user","content":` +
			`{"type":"text","text":"` + req.Call.ServerID + " " + req.Call.Name + `"}}]}`)}
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		host := connect(t, s, version, nil)
		for name, want := range map[string]string{"crm.summary": "crm prompt:summary",
			"wiki.summary": "wiki prompt:summary",
			"only_crm":     "crm prompt:only_crm", "wiki.only_wiki": "wiki prompt:only_wiki"} {
			got, err := host.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name})
			if err != nil || got.Messages[0].Content.(*mcp.TextContent).Text != want {
				t.Errorf("%s: %s: got %+v and %v, want %q", version, name, got, err, want)
			}
		}
		_, err := host.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "summary"})
		if err == nil || !strings.Contains(err.Error(), `unknown prompt "summary"`) {
			t.Errorf("%s: a name that two servers have: got %v", version, err)
		}
	}
}
