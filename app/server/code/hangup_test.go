package code

import (
	"context"
	"strings"
	"testing"
)

// A person who tries out a server writes a conversation into a pipe and closes it. All requests
// must be answered.
func TestWhatWasAskedBeforeTheEndOfTheInputIsAnswered(t *testing.T) {
	const opened = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	tests := []struct {
		name, conversation string
		want               []string
	}{
		{"initialize alone", opened, []string{`"serverInfo"`}},
		{"lists and a ping", opened + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":"p","method":"ping"}
{"jsonrpc":"2.0","id":3,"method":"prompts/list"}`, []string{`"serverInfo"`, `"run_code"`, `"id":"p"`, `"prompts"`}},
		{"the revision without initialize",
			`{"jsonrpc":"2.0","id":1,"method":"server/discover",` +
				`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
				`"io.modelcontextprotocol/clientInfo":{"name":"sh","version":"1"},` +
				`"io.modelcontextprotocol/clientCapabilities":{}}}}`, []string{`"2026-07-28"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, _ := newServer(t)
			var out strings.Builder
			if err := s.Serve(context.WithoutCancel(t.Context()), strings.NewReader(test.conversation),
				&out); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got %.200s …, want %s", out.String(), want)
				}
			}
		})
	}
}
