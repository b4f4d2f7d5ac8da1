package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// The servers that cases can call. The runner of the cases provides them.
const (
	DemoServer    = "demo"       // see Tools
	StoreServer   = "note-store" // see Tools; its module is note_store
	MissingServer = "offline"    // a server that cannot be reached
)

// Tool is one tool of the servers that cases call. As JSON it is the tool's
// definition (MCP 2025-11-25, Tool).
type Tool struct {
	Server      string          `json:"-"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	// OutputSchema is nil when the tool promises nothing.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Denied reports that policy must deny the call.
	Denied bool `json:"-"`
	// Asks reports that a person must approve the call, see Approves.
	Asks bool `json:"-"`
}

// Tools returns the tools of both servers. cases/README.md describes them.
func Tools() []Tool {
	schema := func(properties string, required ...string) json.RawMessage {
		list, _ := json.Marshal(append([]string{}, required...)) // strings always encode
		return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s},"required":%s}`, properties, list))
	}
	return []Tool{
		{Server: DemoServer, Name: "echo", Description: "Returns its arguments.", InputSchema: schema("")},
		{Server: DemoServer, Name: "text", Description: "Returns a text.",
			InputSchema: schema(`"text":{"type":"string"}`, "text")},
		{Server: DemoServer, Name: "items", Description: "Returns a list of items.",
			InputSchema:  schema(`"count":{"type":"integer"}`, "count"),
			OutputSchema: schema(`"items":{"type":"array"}`, "items")},
		{Server: DemoServer, Name: "blocks", Description: "Returns two blocks of content.", InputSchema: schema("")},
		{Server: DemoServer, Name: "both", Description: "Returns structured content that differs from its text.",
			InputSchema: schema("")},
		{Server: DemoServer, Name: "big", Description: "Returns a long text.",
			InputSchema: schema(`"bytes":{"type":"integer"}`, "bytes")},
		{Server: DemoServer, Name: "slow", Description: "Answers late.",
			InputSchema: schema(`"ms":{"type":"integer"}`, "ms")},
		{Server: DemoServer, Name: "fail", Description: "Fails.",
			InputSchema: schema(`"message":{"type":"string"}`, "message")},
		{Server: DemoServer, Name: "forbidden", Description: "Is never allowed.", InputSchema: schema(""),
			Denied: true},
		{Server: DemoServer, Name: AskingTool, Description: "Waits for a person.",
			InputSchema: schema(`"refuse":{"type":"boolean"}`), Asks: true},
		{Server: StoreServer, Name: "Notes.get-note", Description: "Returns one note.",
			InputSchema: schema(`"id":{"type":"integer"}`, "id")},
		{Server: StoreServer, Name: "list_notes", Description: "Lists the notes.", InputSchema: schema("")},
	}
}

// AskingTool is the tool of DemoServer whose calls wait for a person.
const AskingTool = "ask"

// Approves reports whether the person approves a call of AskingTool with these arguments.
func Approves(arguments json.RawMessage) bool {
	var given struct {
		Refuse bool `json:"refuse"`
	}
	return strictjson.UnmarshalOpen(arguments, &given) == nil && !given.Refuse
}

// Answer does what a tool does and returns its CallToolResult (MCP 2025-11-25,
// tools/call). It is given only tools and arguments that Tools allows.
func Answer(tool string, arguments json.RawMessage) (json.RawMessage, error) {
	var given struct {
		Text    string `json:"text"`
		Message string `json:"message"`
		Count   int    `json:"count"`
		Bytes   int    `json:"bytes"`
		MS      int    `json:"ms"`
		ID      int    `json:"id"`
	}
	if tool == "echo" {
		return result{Structured: arguments, Content: []block{text(string(arguments))}}.encode()
	}
	if err := strictjson.UnmarshalOpen(arguments, &given); err != nil {
		return nil, fmt.Errorf("arguments of %q: %w", tool, err)
	}
	switch tool {
	case "text":
		return result{Content: []block{text(given.Text)}}.encode()
	case "items":
		return items(given.Count)
	case AskingTool:
		return result{Content: []block{text("allowed")}}.encode()
	case "blocks":
		return result{Content: []block{text("one"), text("two")}}.encode()
	case "both":
		return result{Structured: json.RawMessage(`{"from":"structure"}`),
			Content: []block{text(`{"from":"text"}`)}}.encode()
	case "big":
		return result{Content: []block{text(strings.Repeat("x", given.Bytes))}}.encode()
	case "slow":
		time.Sleep(time.Duration(given.MS) * time.Millisecond)
		return result{Content: []block{text("late")}}.encode()
	case "fail":
		return result{Content: []block{text(given.Message)}, IsError: true}.encode()
	case "Notes.get-note":
		return result{Content: []block{text(fmt.Sprintf(`{"id":%d,"body":"note %d"}`, given.ID, given.ID))}}.encode()
	case "list_notes":
		return result{Content: []block{text(`[{"id":1},{"id":2}]`)}}.encode()
	}
	return nil, fmt.Errorf("the tool %q has no behaviour", tool)
}

// result is a CallToolResult.
type result struct {
	Content    []block         `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// block is a content block of type text.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func text(s string) block { return block{"text", s} }

func (r result) encode() (json.RawMessage, error) { return json.Marshal(r) }

func items(count int) (json.RawMessage, error) {
	type item struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}
	list := make([]item, count)
	for i := range list {
		list[i] = item{i, fmt.Sprintf("item %d", i)}
	}
	structured, err := json.Marshal(map[string]any{"items": list})
	if err != nil {
		return nil, err
	}
	return result{Structured: structured, Content: []block{text(string(structured))}}.encode()
}
