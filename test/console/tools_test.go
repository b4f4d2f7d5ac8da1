package console

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/test/browser"
)

// addTool adds a tool that only reads and answers with a text.
func addTool(server *mcp.Server, name, description, text string) {
	server.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
}

// trusted is a configuration with one server whose hints count.
func trusted(url string) string {
	return "mcpServers: {notes: {url: " + url + "}}\nservers: {notes: {trustAnnotations: true}}\nreplay: {keep: 1h}\n"
}

// A reviewer looks at a tool, sees it change, accepts the change, and asks the rules.
func TestToolsAndPolicies(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	addTool(server, "read_note", "Reads one note.", "a note")
	addTool(server, "list_notes", "Lists the notes.", "notes")
	a := startAirlock(t, trusted(startServer(t, server, "")))
	b := browser.Open(t)
	signIn(t, b, a, a.token(t, "ann", "run,audit"))
	b.Goto(t, a.address+"/servers")
	b.Sees(t, "connected") // by itself
	b.Goto(t, a.address+"/tools")
	b.Fill(t, "Search", "reads one")
	b.Click(t, "button", "Search")
	b.Click(t, "link", "read_note")
	b.Sees(t, "Reads one note.", "the tool says so, and its server's claims are trusted", `"readOnlyHint": true`)

	b.Goto(t, a.address+"/policies")
	b.Sees(t, "permit")
	b.Fill(t, "Server", "notes")
	b.Fill(t, "Tool", "read_note")
	b.Fill(t, "Arguments", `{"id": 1}`)
	b.Click(t, "button", "Explain")
	b.Sees(t, "The call is made without a question.", "risk read:")
	b.Fill(t, "Arguments", `[1]`)
	b.Click(t, "button", "Explain")
	b.Sees(t, "the arguments are not a JSON object")
	b.NoProblems(t, "422 (Unprocessable Entity)")

	addTool(server, "read_note", "Reads one note. <img src=x onerror=canary(1)>", "a note")
	admin := browser.Open(t)
	signIn(t, admin, a, a.token(t, "bob", "admin"))
	admin.Goto(t, a.address+"/servers")
	admin.Click(t, "button", "Ask again: notes")
	admin.Sees(t, "notes has answered.")
	b.Goto(t, a.address+"/tools")
	b.Click(t, "link", "One tool is withheld until a person accepts what is new.")
	b.Sees(t, `+  "description": "Reads one note. <img src=x onerror=canary(1)>"`,
		"A caller with the scope admin can accept them.")
	admin.Goto(t, a.address+"/tools/changes")
	admin.Click(t, "button", "Accept this definition")
	admin.Sees(t, "read_note of notes can be used, with the definition that you were shown.",
		"No tool is withheld.")
	b.Goto(t, a.address+"/tools?q=read_note")
	b.Click(t, "link", "read_note")
	b.Sees(t, "onerror")
	if log := a.prints(t, "audit", "tail", "-n", "50", "--json"); !strings.Contains(
		log, "a changed definition is accepted") || !strings.Contains(log, `"principal":"bob"`) {
		t.Errorf("the log does not say who accepted:\n%s", log)
	}
}

// A reviewer filters, verifies and exports the log. The saved file equals the output of the
// command.
func TestAuditLog(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	addTool(server, "read_note", "Reads one note.", "a note")
	a := startAirlock(t, trusted(startServer(t, server, "")))
	ran := a.run(t, a.token(t, "ann", "run"), "from servers.notes import read_note\nawait read_note({})\nresult = 1")
	b := browser.Open(t)
	signIn(t, b, a, a.token(t, "rev", "audit"))
	b.Goto(t, a.address+"/audit")
	b.Do(t, "choose", map[string]any{"label": "Kind", "value": "outcome"})
	b.Click(t, "button", "Filter")
	b.Sees(t, "read_note")
	b.Fill(t, "Run", "run_of_nobody")
	b.Click(t, "button", "Filter")
	b.Sees(t, "No record matches.")
	b.Goto(t, a.address+"/audit")
	b.Click(t, "button", "Verify the log")
	b.Sees(t, "The log is sound: its chain is complete and its checkpoints match.")
	for _, format := range []string{"jsonl", "ocsf", "otlp"} {
		b.Goto(t, a.address+"/audit")
		var open bool
		b.Evaluate(t, "document.querySelector('.actions details').open = true", &open)
		b.Do(t, "choose", map[string]any{"label": "Format", "value": format})
		b.Fill(t, "Only the run", ran.RunID)
		saved := b.Do(t, "downloads", map[string]any{"role": "button", "name": "Export"})
		got, err := os.ReadFile(saved.Path)
		if err != nil {
			t.Fatal(err)
		}
		if want := a.prints(t, "audit", "export", "--format", format, "--run", ran.RunID); string(got) != want ||
			want == "" {
			t.Errorf("%s: got\n%s\nwant\n%s", format, got, want)
		}
	}
}

// An administrator suspends an agent and has it act again; another caller does not see it.
func TestAgents(t *testing.T) {
	a := startAirlock(t, "mcpServers: {}\n")
	id := strings.Fields(a.prints(t, "agents", "create", "crawler", "--for", "ann"))[0]
	b := browser.Open(t)
	signIn(t, b, a, a.token(t, "bob", "admin"))
	b.Goto(t, a.address+"/agents")
	b.Click(t, "link", "crawler")
	b.Sees(t, "supervised, trust 1", "requests this hour")
	b.Click(t, "button", "Suspend")
	b.Sees(t, "The agent is suspended.")
	if shown := a.prints(t, "agents", "show", id, "--json"); !strings.Contains(shown, `"status":"suspended"`) {
		t.Errorf("got %s", shown)
	}
	b.Click(t, "button", "Resume")
	b.Sees(t, "The agent is active.")
	b.Begin(t, browser.Profile{})
	signIn(t, b, a, a.token(t, "eve", "agents"))
	if status := b.Goto(t, a.address+"/agents/"+id); status != 404 {
		t.Errorf("another's agent: got %d, want 404", status)
	}
	b.NoProblems(t, "404 (Not Found)")
}
