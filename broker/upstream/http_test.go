package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// remote starts an HTTP server and connects to it as "remote".
func remote(t testing.TB, opts *upstream.Options, handler http.Handler, change func(*upstream.Config)) *upstream.Set {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := upstream.Config{ID: "remote", URL: server.URL + "/mcp"}
	if change != nil {
		change(&config)
	}
	return connect(t, opts, config)
}

// sdkServer is an MCP server made with the SDK; it has the tool "echo".
func sdkServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	addTool(server, "echo")
	return server
}

func addTool(server *mcp.Server, name string) {
	server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
}

func TestHTTPWithBothEras(t *testing.T) {
	tests := []struct {
		name string
		opts mcp.StreamableHTTPOptions
	}{
		{"sessions (2025-11-25)", mcp.StreamableHTTPOptions{}},
		{"sessions, JSON answers", mcp.StreamableHTTPOptions{JSONResponse: true}},
		{"stateless (2026-07-28)", mcp.StreamableHTTPOptions{Stateless: true}},
		{"stateless, JSON answers", mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := sdkServer()
			var mu sync.Mutex
			var seen []http.Header
			handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &test.opts)
			set := remote(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				seen = append(seen, r.Header.Clone())
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
			mu.Lock()
			defer mu.Unlock()
			regions := 0
			for _, header := range seen {
				if header.Get("Authorization") != "Bearer hunter22" {
					t.Errorf("got a request without the configured header: %v", header)
				}
				if header.Get("Mcp-Param-Region") == "north" {
					regions++
				}
			}
			if test.opts.Stateless && regions != 1 {
				t.Errorf("got %d calls with the header that the tool asks for, want 1", regions)
			}
		})
	}
}

func TestHTTPListChanges(t *testing.T) {
	server := sdkServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	changes := make(chan string, 10)
	set := remote(t, &upstream.Options{OnChange: func(id string) { changes <- id }}, handler, nil)
	addTool(server, "second")
	<-changes
	if got := names(t, set); len(got) != 2 {
		t.Errorf("got tools %q, want two", got)
	}
}

func TestHTTPProblems(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret internals", code) }
	}
	tests := []struct {
		name    string
		handler http.Handler
		change  func(*upstream.Config)
		reason  error
		want    string
	}{
		{"nobody listens", status(200), func(c *upstream.Config) { c.URL = "http://127.0.0.1:1/mcp?key=hunter22" },
			upstream.ErrUnreachable,
			`"http://127.0.0.1:1/mcp" could not be reached: "connect: connection refused"`},
		{"wrong credentials", status(401), nil, upstream.ErrUnauthorized, "wants other credentials (HTTP 401)"},
		{"forbidden", status(403), nil, upstream.ErrUnauthorized, "wants other credentials (HTTP 403)"},
		{"no such page", status(404), nil, upstream.ErrNotMCP, "answered with HTTP 404 (Not Found)"},
		{"an internal error", status(500), nil, upstream.ErrNotMCP, "answered with HTTP 500 (Internal Server Error)"},
		{"a web page", http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			io.WriteString(w, "<html>Hello</html>")
		}), nil, upstream.ErrNotMCP,
			"answered with a web page, not as an MCP server"},
		{"a page to sign in", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<!doctype html><html><head><title>\n Sign in &amp; go\n</title></head><body>"+
				strings.Repeat("x", 100_000))
		}), nil, upstream.ErrNotMCP, `answered with a web page ("Sign in & go"), not as an MCP server`},
		{"no TLS behind https", status(200),
			func(c *upstream.Config) { c.URL = strings.Replace(c.URL, "http:", "https:", 1) }, upstream.ErrUnreachable,
			"does not speak TLS; its address may begin with http:// instead"},
		{"a connection that is closed", http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }), nil, upstream.ErrNotMCP,
			"closed the connection without an answer"},
		{"JSON that is no JSON-RPC", jsonHandler(func(string, json.RawMessage) string { return `{"hello":"world"}` }),
			nil, upstream.ErrNotMCP,
			"did not answer as an MCP server"},
		{"another origin", http.RedirectHandler("http://127.0.0.1:9/mcp?key=hunter22", http.StatusTemporaryRedirect),
			nil, upstream.ErrNotMCP,
			`redirects to "http://127.0.0.1:9/mcp"`},
		{"no answer", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // only then is the end of the connection seen
			<-r.Context().Done()
		}),
			func(c *upstream.Config) { c.StartTimeout = 400 * time.Millisecond }, upstream.ErrNoAnswer,
			"did not answer within 400ms"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := remote(t, nil, test.handler, test.change)
			err := set.Problem("remote")
			if !errors.Is(err, test.reason) {
				t.Errorf("got %v, want %v", err, test.reason)
			}
			problem := set.Servers()[0].Problem
			if !strings.Contains(problem, test.want) || strings.Contains(problem, "hunter22") ||
				strings.Contains(problem, "internals") {
				t.Errorf("got %q, want %q in it and nothing secret", problem, test.want)
			}
		})
	}
}

func TestHTTPCertificateNobodyTrusts(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	set := connect(t, nil, upstream.Config{ID: "remote", URL: server.URL})
	err := set.Problem("remote")
	if !errors.Is(err, upstream.ErrUnreachable) || !strings.Contains(err.Error(), "certificate that is not trusted") {
		t.Errorf("got %v, want ErrUnreachable about the certificate", err)
	}
}

// jsonHandler answers each JSON-RPC request with what answer returns for its
// method, %s in it being the request's ID.
func jsonHandler(answer func(method string, params json.RawMessage) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		body := answer(request.Method, request.Params)
		if code, text, ok := strings.Cut(body, " "); ok && len(code) == 3 {
			var status int
			fmt.Sscan(code, &status) // an invalid code is 0 and panics
			w.WriteHeader(status)
			io.WriteString(w, strings.ReplaceAll(text, "%s", string(request.ID)))
			return
		}
		kind := "application/json"
		if strings.HasPrefix(body, "data:") || strings.HasPrefix(body, "event:") {
			kind = "text/event-stream"
		}
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, strings.ReplaceAll(body, "%s", string(request.ID)))
	}
}

// plainServer answers the handshake and lists one tool; calls are answered by call.
func plainServer(call func() string) http.HandlerFunc {
	return jsonHandler(func(method string, _ json.RawMessage) string {
		if method == "tools/call" {
			return call()
		}
		return plainAnswer(method)
	})
}

// plainAnswer is the answer of a server with the tool "t" to a method that is not tools/call.
func plainAnswer(method string) string {
	switch method {
	case "initialize":
		return `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},` +
			`"serverInfo":{"name":"x","version":"1"}}}`
	case "tools/list":
		return `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}`
	}
	return `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`
}

func TestHTTPCalls(t *testing.T) {
	const result = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"odd"}],"n":1.0}}`
	big := strings.Repeat("x", 17<<20)
	tests := []struct {
		name, answer string
		want         string // the result, or
		kind         upstream.ErrorType
		retryable    bool
		message      string
	}{
		{"JSON", result, `{"content":[{"type":"odd"}],"n":1.0}`, "", false, ""},
		{"an event", "event: message\ndata: " + result + "\n\n", `{"content":[{"type":"odd"}],"n":1.0}`, "", false, ""},
		{"an event over several lines", "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\"result\":\ndata:{}}\n\n", `{}`,
			"", false, ""},
		{"an event without a blank line behind it", "data: " + result, `{"content":[{"type":"odd"}],"n":1.0}`, "",
			false, ""},
		{"other events before it", "event: ping\ndata: 1\n\ndata: no JSON\n\n: comment\ndata\n\nstray\n\ndata: " +
			result + "\n\n", `{"content":[{"type":"odd"}],"n":1.0}`, "", false, ""},
		{"a JSON-RPC error", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad \u202eregion"}}`, "",
			upstream.ToolError, false,
			"the server refused the call: bad region"},
		{"a JSON-RPC error with status 400",
			`400 {"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad region"}}`, "", upstream.ToolError,
			false,
			"the server refused the call: bad region"},
		{"status 400 without one", "400 no", "", upstream.ToolError, false, "the server refused the call (HTTP 400)"},
		{"a web page", "200 <html>Log in</html>", "", upstream.InvalidOutput, false,
			"the server answered with something that is not MCP"},
		{"no JSON-RPC", `{"result":1}`, "", upstream.InvalidOutput, false,
			"the server answered with something that is not MCP"},
		{"an answer without measure", `{"jsonrpc":"2.0","id":%s,"result":"` + big + `"}`, "", upstream.OutputLimit,
			false, "the result has more than the 16711680 bytes that one call may return; " +
				upstream.AskForLess},
		{"an event without measure", "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\"" + big + "\"}\n\n", "",
			upstream.OutputLimit, false, "the result has more than the 16711680 bytes that one call may return; " +
				upstream.AskForLess},
		{"a stream that breaks off", "data: {\"jsonrpc\":\n", "", upstream.TransientNetwork, false,
			"the connection to the server was lost"},
		{"too many calls", "429 slow down", "", upstream.RateLimit, true, "the server asks for fewer calls"},
		{"credentials that have expired", "401 no", "", upstream.ToolError, false,
			"the server refused Airlock's credentials (HTTP 401)"},
		{"overload", "503 later", "", upstream.TransientNetwork, true, "the server is not available now (HTTP 503)"},
		{"a failure in between", "502 bad gateway", "", upstream.TransientNetwork, false,
			"the server failed (HTTP 502)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := remote(t, nil, plainServer(func() string { return test.answer }), nil)
			for round := range 2 { // the session survives
				got, err := set.Call(t.Context(), "remote", "t", nil)
				if test.kind == "" {
					if err != nil || string(got) != test.want {
						t.Errorf("round %d: got %s, %v, want %s", round, got, err, test.want)
					}
					continue
				}
				var failed *upstream.CallError
				if !errors.As(err, &failed) {
					t.Fatalf("round %d: got %.100s, %v, want a CallError", round, got, err)
				}
				if failed.Type != test.kind || failed.Retryable != test.retryable || failed.Message != test.message {
					t.Errorf("round %d: got %s (retryable %v): %s, want %s (retryable %v): %s",
						round, failed.Type, failed.Retryable, failed.Message, test.kind, test.retryable, test.message)
				}
			}
		})
	}
}

// The configured headers are credentials: a redirect must not carry them away.
func TestHeadersStayWithTheirOrigin(t *testing.T) {
	var mu sync.Mutex
	stolen := false
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		stolen = stolen || r.Header.Get("X-Key") != ""
	}))
	defer thief.Close()
	redirect := http.RedirectHandler(thief.URL, http.StatusPermanentRedirect)
	set := remote(t, nil, redirect, func(c *upstream.Config) { c.Headers = map[string]string{"X-Key": "hunter22"} })
	mu.Lock()
	defer mu.Unlock()
	if stolen || set.Problem("remote") == nil {
		t.Errorf("got the key at another origin (%v), or no problem: %v", stolen, set.Problem("remote"))
	}
}
