package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const canary = "c4nary-held-0123456789"

// testGate is a gate that holds the canary.
type testGate struct{}

func (testGate) Text(text string) string       { return strings.ReplaceAll(text, canary, "[redacted:x]") }
func (g testGate) Sentence(text string) string { return g.Text(text) }
func (g testGate) JSON(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(g.Text(string(raw)))
}

// Every part of every message to a host passes through the gate.
func TestAllThatIsSentIsCleaned(t *testing.T) {
	s := &Transport{gate: testGate{}}
	answers := map[string]mcp.Result{
		"a text": &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: canary}}},
		"an error": &mcp.CallToolResult{IsError: true,
			Content: []mcp.Content{&mcp.TextContent{Text: canary}}},
		"structured content": &mcp.CallToolResult{StructuredContent: map[string]any{canary: []string{"x " + canary}}},
		"raw content":        &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"a":"` + canary + `"}`)},
		"a link": &mcp.CallToolResult{Content: []mcp.Content{&mcp.ResourceLink{URI: "run://" + canary,
			Name: canary, Title: canary, Description: canary}}},
		"an embedded resource": &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "run://x", Text: canary}}}},
		"a resource": &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "run://x",
			Text: canary}, {URI: "run://y", Blob: []byte("\x00" + canary)}}},
		"a prompt": &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user",
			Content: &mcp.TextContent{Text: canary}}}},
	}
	for name, answer := range answers {
		handler := s.cleanAnswers(func(context.Context, string, mcp.Request) (mcp.Result, error) { return answer, nil })
		got, err := handler(t.Context(), "tools/call", nil)
		if err != nil {
			t.Fatal(err)
		}
		if shown := asText(t, got); strings.Contains(shown, "c4nary") || !strings.Contains(shown, "[redacted:") &&
			!strings.Contains(shown, "AFtyZWRhY3RlZ") {
			t.Errorf("%s: %s", name, shown)
		}
	}
	requests := map[string]mcp.Request{
		"a question": &mcp.ClientRequest[*mcp.ElicitParams]{Params: &mcp.ElicitParams{Message: canary,
			URL: "https://a.example/" + canary, RequestedSchema: map[string]any{"title": canary}}},
		"raw schema": &mcp.ClientRequest[*mcp.ElicitParams]{Params: &mcp.ElicitParams{
			RequestedSchema: json.RawMessage(`{"description":"` + canary + `"}`)}},
		"progress": &mcp.ClientRequest[*mcp.ProgressNotificationParams]{
			Params: &mcp.ProgressNotificationParams{Message: canary}},
		//lint:ignore SA1019 revisions before 2026-07-28 have it
		"a log message": &mcp.ClientRequest[*mcp.LoggingMessageParams]{Params: &mcp.LoggingMessageParams{Data: canary}},
		//lint:ignore SA1019 revisions before 2026-07-28 have it
		"logged members": &mcp.ClientRequest[*mcp.LoggingMessageParams]{Params: &mcp.LoggingMessageParams{
			Data: map[string]any{canary: []any{map[string]any{"a": canary}}}}},
	}
	for name, request := range requests {
		handler := s.cleanRequests(func(_ context.Context, _ string, req mcp.Request) (mcp.Result, error) {
			if shown := asText(t, req.GetParams()); strings.Contains(shown, "c4nary") ||
				!strings.Contains(shown, "[redacted:") {
				t.Errorf("%s: %s", name, shown)
			}
			return nil, nil
		})
		if _, err := handler(t.Context(), "", request); err != nil {
			t.Fatal(err)
		}
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// Issue 23: errors repeated the method, the URI or the name that a host had sent, including
// secrets.
func TestErrorsAreCleaned(t *testing.T) {
	s := &Transport{gate: testGate{}}
	for name, fail := range map[string]error{
		"a JSON-RPC error": &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool " + canary,
			Data: json.RawMessage(`{"uri":"run://` + canary + `"}`)},
		"another error": errors.New("unknown prompt " + canary),
	} {
		handler := s.cleanAnswers(func(context.Context, string, mcp.Request) (mcp.Result, error) { return nil, fail })
		_, err := handler(t.Context(), "tools/call", nil)
		var refused *jsonrpc.Error
		if !errors.As(err, &refused) || strings.Contains(refused.Message+string(refused.Data), "c4nary") ||
			!strings.Contains(refused.Message, "unknown ") {
			t.Errorf("%s: got %v, want it without the secret", name, err)
		}
	}
	for method, isAnswered := range map[string]bool{
		canary + "7": true, "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": true, "tools/q8Zr2Lk0vXw93TbNc": true,
		"a b": true, strings.Repeat("a", 40): true,
		"tools/list": false, "notifications/roots/list_changed": false, "$/cancelRequest": false, "tasks/get": false,
	} {
		answer := misshapen(&jsonrpc.Request{ID: newID(t), Method: method})
		if (answer != nil) != isAnswered || bytes.Contains(answer, []byte(method)) {
			t.Errorf("%s: got %s", method, answer)
		}
	}
}

func newID(t *testing.T) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID("1")
	if err != nil {
		t.Fatal(err)
	}
	return id
}
