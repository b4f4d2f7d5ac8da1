package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// A result beyond the size of a message arrives if its call allows it, over each transport, and is refused beyond that.
func TestLargeResults(t *testing.T) {
	const size, most = 20_000_000, 30_000_000
	sized := func(form string) *upstream.Set {
		return remote(t, nil, plainServer(func() string {
			return fmt.Sprintf(form, "%s", strings.Repeat("x", size))
		}), nil)
	}
	stdio, _ := fake(t, "good")
	events := sdkServer()
	events.AddTool(&mcp.Tool{Name: "big", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", size)}}}, nil
		})
	sse := remoteSSE(t, nil, sseHandler(events), nil)
	task := &worker{t: t}
	task.states = []map[string]any{task.state("completed", completed(strings.Repeat("x", size)))}
	worker := connect(t, nil, task.start())
	const form = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`
	tests := []struct {
		name         string
		set          *upstream.Set
		server, tool string
		arguments    string
	}{
		{"stdio", stdio, "good", "big", `{"bytes":20000000}`},
		{"JSON", sized(form), "remote", "t", `{}`},
		{"an event", sized("data: " + form + "\n\n"), "remote", "t", `{}`},
		{"HTTP with SSE", sse, "remote", "big", `{}`},
		{"a task", worker, "worker", "work", `{}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for range 2 { // the turn of the first one has ended
				ctx, cancel := context.WithCancel(t.Context())
				got, err := test.set.Call(upstream.AllowLarge(ctx, most), test.server, test.tool,
					json.RawMessage(test.arguments))
				if err != nil || len(text(t, got)) != size {
					t.Errorf("got %d bytes, %v, want %d of text", len(got), err, size)
				}
				cancel()
			}
			if test.set == sse {
				return // a message that is skipped has no ID there
			}
			_, err := test.set.Call(upstream.AllowLarge(t.Context(), 19_000_000), test.server, test.tool,
				json.RawMessage(test.arguments))
			var failed *upstream.CallError
			if !errors.As(err, &failed) || failed.Type != upstream.OutputLimit ||
				failed.Message != "the result has more than the 19000000 bytes that one call may return; "+
					upstream.AskForLess {
				t.Errorf("beyond the limit: got %v", err)
			}
		})
	}
}

// A connection receives one large result at a time: the next one waits until the caller has dealt with it, or is
// cancelled. Over HTTP, small ones go on meanwhile.
func TestLargeResultsTakeTurns(t *testing.T) {
	web := remote(t, nil, jsonHandler(func(method string, params json.RawMessage) string {
		if method != "tools/call" {
			return plainAnswer(method)
		}
		var call struct{ Arguments struct{ Bytes int } }
		json.Unmarshal(params, &call) // no arguments are 0 bytes
		return `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"` +
			strings.Repeat("x", call.Arguments.Bytes) + `"}]}}`
	}), nil)
	stdio, _ := fake(t, "good")
	for name, tool := range map[string]struct {
		set          *upstream.Set
		server, tool string
	}{"stdio": {stdio, "good", "big"}, "HTTP": {web, "remote", "t"}} {
		t.Run(name, func(t *testing.T) {
			call := func(ctx context.Context, bytes int) error {
				got, err := tool.set.Call(upstream.AllowLarge(ctx, 20_000_000), tool.server, tool.tool,
					json.RawMessage(fmt.Sprintf(`{"bytes":%d}`, bytes)))
				if err == nil && len(text(t, got)) != bytes {
					t.Errorf("got %d bytes, want %d of text", len(got), bytes)
				}
				return err
			}
			first, end := context.WithCancel(t.Context())
			defer end()
			if err := call(first, 17_000_000); err != nil {
				t.Fatal(err)
			}
			var ended atomic.Bool
			cancelled, cancel := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			waiting.Go(func() {
				if err := call(cancelled, 17_000_000); !errors.Is(err, context.Canceled) {
					t.Errorf("a cancelled call: got %v", err)
				}
			})
			waiting.Go(func() {
				if err := call(t.Context(), 17_000_001); err != nil || !ended.Load() {
					t.Errorf("the next one: got %v, or it did not wait", err)
				}
			})
			if name == "HTTP" {
				if err := call(t.Context(), 10); err != nil {
					t.Errorf("a small one meanwhile: %v", err)
				}
			}
			cancel()
			ended.Store(true)
			end()
			waiting.Wait()
		})
	}
}
