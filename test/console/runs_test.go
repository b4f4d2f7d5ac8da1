package console

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// startNotes serves notes that are read without a question, and written after one. A
// reading waits until it may go on.
func startNotes(t *testing.T) (url string, goOn chan<- struct{}) {
	t.Helper()
	waits := make(chan struct{})
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	answer := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{Name: "read_note", InputSchema: schema, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
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

// begin runs a program in the background; what it returns waits for its end.
func begin(t *testing.T, host *mcp.ClientSession, code string) (wait func() ran) {
	t.Helper()
	ended := make(chan *mcp.CallToolResult, 1)
	go func() {
		result, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "python", "code": code}})
		if err != nil {
			result = &mcp.CallToolResult{StructuredContent: map[string]any{"error": map[string]any{"message": err.Error()}}}
		}
		ended <- result
	}()
	return func() ran {
		raw, err := json.Marshal((<-ended).StructuredContent)
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

const writes = "from servers.notes import write_note\nawait write_note({'title': 'Milk', 'text': 'two litres'})\nresult = 'written'"

// A person watches a run until it ends, and sees its code, calls and output. Another
// person does not see it.
func TestWatchARun(t *testing.T) {
	url, goOn := startNotes(t)
	a := startAirlock(t, trusted(url))
	host := a.host(t, a.token(t, "ann", "run"))
	b := openBrowser(t)
	b.signIn(t, a, a.token(t, "ann", "run"))
	b.open(t, a.address+"/runs")
	b.sees(t, "No run goes on now.")
	ended := begin(t, host, "from servers.notes import read_note\nprint('reading')\nawait read_note({})\nresult = 'read'")
	b.sees(t, "1 going on now.")
	b.do(t, "taps", map[string]any{"selector": "main table a"})
	b.sees(t, "running")
	close(goOn)
	b.sees(t, "Timeline", "notes/read_note", "await read_note({})")
	b.unsees(t, "so far") // the end shows by itself
	got := ended()
	if !got.OK {
		t.Errorf("got %+v", got)
	}
	var path string
	b.evaluate(t, "location.pathname", &path)
	if path != "/runs/"+got.RunID {
		t.Errorf("the page is %s, the run %s", path, got.RunID)
	}
	b.noProblems(t)
	b.begin(t, profile{})
	b.signIn(t, a, a.token(t, "eve", "run,approve"))
	if status := b.open(t, a.address+path); status != 404 {
		t.Errorf("another's run: got %d, want 404", status)
	}
	b.noProblems(t, "404 (Not Found)")
}

// A person answers a question in the browser, and the run goes on; what was answered
// elsewhere meanwhile is said.
func TestAnswerAQuestion(t *testing.T) {
	url, _ := startNotes(t)
	a := startAirlock(t, trusted(url))
	host := a.host(t, a.token(t, "ann", "run"))
	first, second := openBrowser(t), openBrowser(t)
	token := a.token(t, "ann", "run,approve")
	for _, b := range []*browser{first, second} {
		b.signIn(t, a, token)
		b.open(t, a.address+"/questions")
		b.sees(t, "No call waits for a person.")
	}
	ended := begin(t, host, writes)
	for _, b := range []*browser{first, second} {
		b.click(t, "link", "notes/write_note") // it comes by itself
		b.sees(t, "Milk", "two litres")
	}
	first.fill(t, "Why not? The model reads it. It may stay empty.", "not now")
	first.do(t, "taps", map[string]any{"selector": "button.primary"})
	if got := ended(); !got.OK {
		t.Errorf("allowed: got %+v", got)
	}
	second.sees(t, "An answer counts no more.")

	ended = begin(t, host, writes)
	second.open(t, a.address+"/questions")
	second.click(t, "link", "notes/write_note")
	second.fill(t, "Why not? The model reads it. It may stay empty.", "no milk today")
	second.click(t, "button", "Deny")
	if got := ended(); got.OK {
		t.Errorf("denied: got %+v", got)
	}
}

// Everything can be reached and done with the keyboard alone.
func TestKeyboardAlone(t *testing.T) {
	url, _ := startNotes(t)
	a := startAirlock(t, trusted(url))
	host := a.host(t, a.token(t, "ann", "run"))
	b := openBrowser(t)
	b.open(t, a.address+"/questions")
	b.do(t, "type", map[string]any{"value": a.token(t, "ann", "run,approve")}) // the field has the focus
	b.do(t, "press", map[string]any{"key": "Enter"})
	b.sees(t, "No call waits for a person.")
	b.do(t, "press", map[string]any{"key": "Tab"})
	var focused string
	b.evaluate(t, "document.activeElement.textContent", &focused)
	if focused != "Skip to content" {
		t.Errorf("the first stop is %q", focused)
	}
	b.do(t, "press", map[string]any{"key": "Enter"})
	ended := begin(t, host, writes)
	b.sees(t, "notes/write_note")
	b.tabTo(t, "notes/write_note")
	b.do(t, "press", map[string]any{"key": "Enter"})
	b.sees(t, "two litres")
	b.tabTo(t, "Deny")
	b.do(t, "press", map[string]any{"key": "Space"})
	if got := ended(); got.OK {
		t.Errorf("denied: got %+v", got)
	}
}

// tabTo moves the focus on until it is on what has a text, and is seen there.
func (b *browser) tabTo(t *testing.T, text string) {
	t.Helper()
	for range 60 {
		b.do(t, "press", map[string]any{"key": "Tab"})
		var at struct {
			Text  string
			Shown bool
		}
		b.evaluate(t, `({Text: document.activeElement.textContent, Shown: getComputedStyle(document.activeElement).outlineStyle !== "none"})`, &at)
		if at.Text == text {
			if !at.Shown {
				t.Errorf("the focus on %q is not shown", text)
			}
			return
		}
	}
	t.Fatalf("the keyboard does not reach %q", text)
}
