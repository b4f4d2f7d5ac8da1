package code

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// profiledTools returns the tools of each caller's profile.
type profiledTools struct{ fakeTools }

func (f profiledTools) Snapshot(who caller.Caller) *catalog.Snapshot {
	return f.snapshot.Within(&catalog.Profile{Name: who.Profile,
		Servers: []catalog.ProfileServers{{Server: "crm", Tools: []catalog.Pattern{catalog.Pattern(who.Profile)}}}})
}

// A host sees the tools of its profile, and the caller of its runs has the profile.
func TestAHostSeesItsProfile(t *testing.T) {
	runs := newFakeRuns()
	s, err := New(profiledTools{newFakeTools(t)}, runs,
		Options{Version: "test", Principal: "user:ann", Profile: "list_*"})
	if err != nil {
		t.Fatal(err)
	}
	session := connect(t, s, "2025-11-25", nil)
	found := textOf(callTool(t, session, "search_tools", map[string]any{"query": ""}))
	if !strings.Contains(found, "list_contacts") || strings.Contains(found, "delete_contact") ||
		strings.Contains(found, "files") {
		t.Errorf("search_tools: got %s, want list_contacts alone", found)
	}
	if res := callTool(t, session, "get_tool_definition",
		map[string]any{"serverId": "crm", "name": "list_contacts"}); res.IsError {
		t.Errorf("got %s, want the definition", textOf(res))
	}
	for _, hidden := range []map[string]any{{"serverId": "crm", "name": "delete_contact"},
		{"serverId": "files", "name": "read"}} {
		if res := callTool(t, session, "get_tool_definition", hidden); !res.IsError ||
			strings.Contains(textOf(res), "not found") {
			t.Errorf("%v: got %s, want that it is not there", hidden, textOf(res))
		}
	}
	if res := callTool(t, session, "get_tool_definition", map[string]any{"name": "read"}); strings.Contains(
		textOf(res), "files") {
		t.Errorf("got %s, want only the servers of the profile named", textOf(res))
	}
	callTool(t, session, "run_code", map[string]any{"language": "python", "code": "1"})
	if got := runs.lastRequest().Caller.Profile; got != "list_*" {
		t.Errorf("run_code: got a caller with profile %q", got)
	}
}
