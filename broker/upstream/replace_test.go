package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// gated is a server whose tool "wait" reports that it was called and waits for a release.
type gated struct {
	config  upstream.Config
	called  chan struct{}
	release chan struct{}
}

func newGated(t *testing.T, id, name string) *gated {
	g := &gated{called: make(chan struct{}, 10), release: make(chan struct{})}
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	tool := func(tool string, wait bool) {
		mcp.AddTool(server, &mcp.Tool{Name: tool},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult,
				any, error) {
				if wait {
					g.called <- struct{}{}
					<-g.release
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
			})
	}
	tool("wait", true)
	tool("name", false)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	g.config = upstream.Config{ID: id, URL: web.URL}
	return g
}

// issue 27: a server that was changed or removed while Airlock serves keeps the calls in flight. The
// next call uses the new connection, or finds no server.
func TestReplacedServersFinishTheirCalls(t *testing.T) {
	first, second, other := newGated(t, "a", "first"), newGated(t, "a", "second"), newGated(t, "b", "other")
	set := connect(t, nil, first.config)
	type answer struct {
		raw json.RawMessage
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		raw, err := set.Call(t.Context(), "a", "wait", nil)
		answers <- answer{raw, err}
	}()
	<-first.called
	if err := set.Replace(t.Context(), []upstream.Config{second.config, other.config}, nil); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"a": "second", "b": "other"} {
		raw, err := set.Call(t.Context(), id, "name", nil)
		if err != nil || text(t, raw) != want {
			t.Errorf("a call of %s: got %s, %v, want %q", id, raw, err, want)
		}
	}
	if err := set.Replace(t.Context(), []upstream.Config{{ID: "c"}}, []string{"a"}); err == nil {
		t.Error("an invalid configuration is accepted")
	}
	if err := set.Replace(t.Context(), nil, []string{"a", "unknown"}); err != nil {
		t.Fatal(err)
	}
	var refused *upstream.CallError
	if _, err := set.Call(t.Context(), "a", "name", nil); !errors.As(err, &refused) ||
		refused.Type != upstream.UnknownTool {
		t.Errorf("a call of a removed server: got %v, want that there is no such server", err)
	}
	if got := set.Servers(); len(got) != 1 || got[0].ID != "b" {
		t.Errorf("got servers %v, want b", got)
	}
	close(first.release)
	if got := <-answers; got.err != nil || text(t, got.raw) != "first" {
		t.Errorf("the call in flight: got %s, %v, want the answer of the first server", got.raw, got.err)
	}
}

// issue 27: closing does not wait for calls of replaced servers, and a restart gives a server another
// process.
func TestRestartAndCloseWithCallsInFlight(t *testing.T) {
	g := newGated(t, "a", "first")
	set := connect(t, nil, g.config)
	failed := make(chan error, 1)
	go func() {
		_, err := set.Call(t.Context(), "a", "wait", nil)
		failed <- err
	}()
	<-g.called
	if err := set.Restart(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := set.Restart(t.Context(), "unknown"); err == nil {
		t.Error("an unknown server is restarted")
	}
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the call in flight succeeded")
	}
	close(g.release)
	if err := set.Replace(t.Context(), nil, nil); !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}

	stdio, notes := fake(t, "good")
	if err := stdio.Restart(t.Context(), "good"); err != nil {
		t.Fatal(err)
	}
	if _, err := stdio.Call(t.Context(), "good", "echo", json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if got := len(notes.Lines(t, "started")); got != 2 {
		t.Errorf("got %d processes started, want 2", got)
	}
}
