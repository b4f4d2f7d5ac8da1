package console

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/test/browser"
)

// startNotes serves notes that are read without a question, and written after one. A
// reading waits until it may go on.
func startNotes(t *testing.T) (url string, goOn chan<- struct{}) {
	t.Helper()
	waits := make(chan struct{})
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	answer := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{Name: "read_note", InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			select {
			case <-waits:
			case <-ctx.Done():
			}
			return answer, ctx.Err()
		})
	server.AddTool(&mcp.Tool{Name: "write_note", InputSchema: schema},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return answer, nil })
	return startServer(t, server, ""), waits
}

// begin runs a program in the background. The returned function waits for its end.
func begin(t *testing.T, host *mcp.ClientSession, code string) (wait func() ran) {
	t.Helper()
	ended := make(chan *mcp.CallToolResult, 1)
	go func() {
		result, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code",
			Arguments: map[string]any{"language": "python", "code": code}})
		if err != nil {
			result = &mcp.CallToolResult{StructuredContent: map[string]any{
				"error": map[string]any{"message": err.Error()}}}
		}
		ended <- result
	}()
	return func() ran {
		raw, err := json.Marshal(testenv.Receive(t, "the end of the run", ended).StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		var got ran
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("got %s, %v", raw, err)
		}
		return got
	}
}

const writes = "from servers.notes import write_note\nawait write_note({'title': 'Milk', 'text': 'two " +
	"litres'})\nresult = 'written'"

// A person watches a run until it ends, and sees its code, calls and output. Another
// person does not see it.
func TestWatchARun(t *testing.T) {
	url, goOn := startNotes(t)
	a := startAirlock(t, trusted(url))
	host := a.host(t, a.token(t, "ann", "run"))
	b := browser.Open(t)
	signIn(t, b, a, a.token(t, "ann", "run"))
	b.Goto(t, a.address+"/runs")
	b.Sees(t, "No run is in progress.")
	ended := begin(t, host,
		"from servers.notes import read_note\nprint('reading')\nawait read_note({})\nresult = 'read'")
	b.Sees(t, "1 in progress.")
	b.Do(t, "taps", map[string]any{"selector": "main table a"})
	b.Sees(t, "running")
	close(goOn)
	b.Sees(t, "Timeline", "notes/read_note", "await read_note({})")
	b.Unsees(t, "so far") // the end shows by itself
	got := ended()
	if !got.OK {
		t.Errorf("got %+v", got)
	}
	var path string
	b.Evaluate(t, "location.pathname", &path)
	if path != "/runs/"+got.RunID {
		t.Errorf("the page is %s, the run %s", path, got.RunID)
	}
	b.NoProblems(t)
	b.Begin(t, browser.Profile{})
	signIn(t, b, a, a.token(t, "eve", "run,approve"))
	if status := b.Goto(t, a.address+path); status != 404 {
		t.Errorf("another's run: got %d, want 404", status)
	}
	b.NoProblems(t, "404 (Not Found)")
}

// A person answers a question in the browser, and the run continues. The page reports a
// question that was answered elsewhere.
func TestAnswerAQuestion(t *testing.T) {
	url, _ := startNotes(t)
	a := startAirlock(t, trusted(url))
	host := a.host(t, a.token(t, "ann", "run"))
	first, second := browser.Open(t), browser.Open(t)
	token := a.token(t, "ann", "run,approve")
	for _, b := range []*browser.Browser{first, second} {
		signIn(t, b, a, token)
		b.Goto(t, a.address+"/questions")
		b.Sees(t, "No call waits for a person.")
	}
	ended := begin(t, host, writes)
	for _, b := range []*browser.Browser{first, second} {
		b.Click(t, "link", "notes/write_note") // it comes by itself
		b.Sees(t, "Milk", "two litres")
	}
	first.Fill(t, "Reason for the model (optional)", "not now")
	first.Do(t, "taps", map[string]any{"selector": "button.primary"})
	if got := ended(); !got.OK {
		t.Errorf("allowed: got %+v", got)
	}
	second.Sees(t, "It can no longer be answered.")

	ended = begin(t, host, writes)
	second.Goto(t, a.address+"/questions")
	second.Click(t, "link", "notes/write_note")
	second.Click(t, "link", "Propose a rule that always allows calls like this")
	second.Sees(t, `@approved("ann")`, `action == Action::"notes/write_note"`, "1 of 1 calls of this tool",
		"1 approved")
	second.Click(t, "link", "Back to the question")
	second.Fill(t, "Reason for the model (optional)", "no milk today")
	second.Click(t, "button", "Deny")
	if got := ended(); got.OK {
		t.Errorf("denied: got %+v", got)
	}
}

// Issue 29: a run that waits without a sandbox shows since when, in the overview, in the list of runs and on its page.
// It continues after the answer.
func TestASuspendedRunShows(t *testing.T) {
	url, _ := startNotes(t)
	a := startAirlock(t, trusted(url)+"runs: {suspendAfter: 200ms}\n")
	host := a.host(t, a.token(t, "ann", "run"))
	b := browser.Open(t)
	signIn(t, b, a, a.token(t, "ann", "run,approve"))
	ended := begin(t, host, writes)
	b.Goto(t, a.address+"/runs")
	b.Sees(t, "1 in progress.", "waiting", "suspended since", "ann") // the list is current by itself
	b.Goto(t, a.address+"/")
	b.Sees(t, "suspended since", "for ann")
	b.Goto(t, a.address+"/runs")
	b.Do(t, "taps", map[string]any{"selector": "main table a"})
	b.Sees(t, "The call notes/write_note waits for a person.", "It has been suspended without a sandbox since",
		"also after a restart of Airlock")
	b.Click(t, "link", "Answer")
	b.Sees(t, "two litres")
	b.Do(t, "taps", map[string]any{"selector": "button.primary"})
	if got := ended(); got.RunID == "" { // the host got its ID when the run was suspended
		t.Errorf("got %+v", got)
	}
	b.Goto(t, a.address+"/runs")
	b.Sees(t, "No run is in progress.", "ok") // by itself
	b.Unsees(t, "suspended since")
	b.NoProblems(t)
}

// Everything can be reached and done with the keyboard alone.
func TestKeyboardAlone(t *testing.T) {
	url, _ := startNotes(t)
	a := startAirlock(t, trusted(url))
	host := a.host(t, a.token(t, "ann", "run"))
	b := browser.Open(t)
	b.Goto(t, a.address+"/questions")
	b.Do(t, "type", map[string]any{"value": a.token(t, "ann", "run,approve")}) // the field has the focus
	b.Do(t, "press", map[string]any{"key": "Enter"})
	b.Sees(t, "No call waits for a person.")
	b.Do(t, "press", map[string]any{"key": "Tab"})
	var focused string
	b.Evaluate(t, "document.activeElement.textContent", &focused)
	if focused != "Skip to content" {
		t.Errorf("the first stop is %q", focused)
	}
	b.Do(t, "press", map[string]any{"key": "Enter"})
	ended := begin(t, host, writes)
	b.Sees(t, "notes/write_note")
	tabTo(t, b, "notes/write_note")
	b.Do(t, "press", map[string]any{"key": "Enter"})
	b.Sees(t, "two litres")
	tabTo(t, b, "Deny")
	b.Do(t, "press", map[string]any{"key": "Space"})
	if got := ended(); got.OK {
		t.Errorf("denied: got %+v", got)
	}
}

// tabTo moves the focus on until it is on what has a text, and is seen there.
func tabTo(t *testing.T, b *browser.Browser, text string) {
	t.Helper()
	for range 60 {
		b.Do(t, "press", map[string]any{"key": "Tab"})
		var at struct {
			Text  string
			Shown bool
		}
		b.Evaluate(t, `({Text: document.activeElement.textContent, Shown: `+
			`getComputedStyle(document.activeElement).outlineStyle !== "none"})`, &at)
		if at.Text == text {
			if !at.Shown {
				t.Errorf("the focus on %q is not shown", text)
			}
			return
		}
	}
	t.Fatalf("the keyboard does not reach %q", text)
}
