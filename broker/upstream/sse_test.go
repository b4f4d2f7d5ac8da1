package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// remoteSSE connects to a handler over the transport of MCP 2024-11-05.
func remoteSSE(t testing.TB, opts *upstream.Options, handler http.Handler,
	change func(*upstream.Config)) *upstream.Set {
	t.Helper()
	return remote(t, opts, handler, func(c *upstream.Config) {
		c.SSE = true
		if change != nil {
			change(c)
		}
	})
}

func sseHandler(server *mcp.Server) http.Handler {
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

func TestSSE(t *testing.T) {
	var mu sync.Mutex
	var seen []*http.Request
	server := sdkServer()
	handler := sseHandler(server)
	changes := make(chan string, 10)
	set := remoteSSE(t, &upstream.Options{OnChange: func(id string) { changes <- id }},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen = append(seen, r)
			mu.Unlock()
			handler.ServeHTTP(w, r)
		}), func(c *upstream.Config) { c.Headers = map[string]string{"Authorization": "Bearer hunter22"} })
	if got := names(t, set); len(got) != 1 || got[0] != "echo" {
		t.Fatalf("got tools %q (%v), want echo", got, set.Problem("remote"))
	}
	got, err := set.Call(t.Context(), "remote", "echo", json.RawMessage(`{"region":"north","n":1.0}`))
	if err != nil || text(t, got) != `{"region":"north","n":1.0}` {
		t.Errorf("got %s, %v, want the arguments back", got, err)
	}
	addTool(server, "second")
	<-changes
	if got := names(t, set); len(got) != 2 {
		t.Errorf("got tools %q after one was added, want two", got)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, request := range seen {
		if request.Header.Get("Authorization") != "Bearer hunter22" {
			t.Errorf("got a %s without the configured header", request.Method)
		}
	}
}

// The stream ends with the server; the next call makes another one.
func TestSSEServerThatWasStartedAnew(t *testing.T) {
	server := sdkServer()
	handler := sseHandler(server)
	hangUp := make(chan struct{})
	var once sync.Once
	set := remoteSSE(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			first := false
			once.Do(func() { first = true })
			if first {
				ctx, cancel := context.WithCancel(r.Context())
				defer cancel()
				go func() { <-hangUp; cancel() }()
				r = r.WithContext(ctx)
			}
		}
		handler.ServeHTTP(w, r)
	}), nil)
	close(hangUp)
	testenv.Await(t, "a call over a new stream", func() bool {
		_, err := set.Call(t.Context(), "remote", "echo", nil)
		return err == nil
	})
}

// stream answers a GET with events and then waits for the client to hang up;
// POSTs go to post.
func stream(events string, post http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			post(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, events)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func TestSSEProblems(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server got a %s with %q", r.Method, r.Header)
	}))
	t.Cleanup(other.Close)
	refuse := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret internals", code) }
	}
	tests := []struct {
		name    string
		handler http.Handler
		reason  error
		want    string
	}{
		{"wrong credentials", refuse(401), upstream.ErrUnauthorized, "wants other credentials (HTTP 401)"},
		{"a page", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }),
			upstream.ErrNotMCP, "answered with a web page"},
		{"a text", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }),
			upstream.ErrNotMCP, "did not answer as an MCP server: \"the answer is not a stream of events\""},
		{"no address to post to", stream("event: hello\ndata: x\n\n", nil), upstream.ErrNoAnswer,
			"did not answer within 500ms"},
		{"a stream that stays empty", stream("", nil), upstream.ErrNoAnswer, "did not answer within 500ms"},
		{"an address of another server", stream("event: endpoint\ndata: "+other.URL+"/steal\n\n", nil),
			upstream.ErrNotMCP, "redirects to"},
		{"messages are refused", stream("event: endpoint\ndata: /post\n\n", refuse(403)), upstream.ErrUnauthorized,
			"HTTP 403"},
		{"nobody answers", stream("event: endpoint\ndata: /post\n\n",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }), upstream.ErrNoAnswer,
			"did not answer within 500ms"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := remoteSSE(t, nil, test.handler, func(c *upstream.Config) {
				if errors.Is(test.reason, upstream.ErrNoAnswer) {
					c.StartTimeout = 500 * time.Millisecond
				}
				c.Headers = map[string]string{"Authorization": "Bearer hunter22"}
			})
			err := set.Problem("remote")
			if !errors.Is(err, test.reason) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q, which is %v", err, test.want, test.reason)
			}
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Bytes are kept as they arrive, rubbish between them ends nothing, and what
// cannot be an answer fails one call only.
func TestSSEKeepsBytesAndSurvivesRubbish(t *testing.T) {
	events := make(chan string, 100)
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, ": hello\n\nevent: endpoint\ndata: /post?session=1\n\nevent: message\ndata: rubbish\n\n")
			for {
				w.(http.Flusher).Flush()
				select {
				case e := <-events:
					io.WriteString(w, e)
				case <-r.Context().Done():
					return
				}
			}
		}
		var message struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil || r.URL.RawQuery != "session=1" {
			t.Errorf("got a POST to %s, %v, want a message to the address of the first event", r.URL, err)
		}
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "Accepted")
		answer := map[string]string{
			"initialize": `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old",` +
				`"version":"1"}}`,
			"tools/list": `{"tools":[{"name":"old","inputSchema":{"type":"object"},"x-own": 1.0}]}`,
			"tools/call": `{"content":[],"x-own":  1.0}`,
		}[message.Method]
		if answer != "" {
			events <- fmt.Sprintf(
				"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":%s}\n\nevent: other\n"+
					"data: {}\n\n", message.ID, answer)
		}
	}
	set := remoteSSE(t, nil, http.HandlerFunc(handler), nil)
	servers := set.Servers()
	if len(servers[0].Tools) != 1 || !strings.Contains(string(servers[0].Tools[0].Raw), `"x-own": 1.0`) {
		t.Fatalf("got %+v (%v), want the definition byte for byte", servers, set.Problem("remote"))
	}
	got, err := set.Call(t.Context(), "remote", "old", nil)
	if err != nil || string(got) != `{"content":[],"x-own":  1.0}` {
		t.Errorf("got %s, %v, want the result byte for byte", got, err)
	}
}
