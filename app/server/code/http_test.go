package code

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/server/servertest"
	"github.com/airlock-mcp/airlock/internal/problem"
)

// overHTTP returns the address of a server on the loopback interface.
func overHTTP(t *testing.T) (string, *fakeRuns) {
	t.Helper()
	s, runs := newServer(t)
	h := httptest.NewServer(s.Handler(servertest.LocalUser("user:ann"), nil))
	t.Cleanup(h.Close)
	return h.URL, runs
}

func connectHTTP(t *testing.T, url, version string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting in %s: %v", version, err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// One address serves hosts of both protocol eras concurrently.
func TestHTTPServesEveryVersion(t *testing.T) {
	url, runs := overHTTP(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			session := connectHTTP(t, url, version)
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Fatalf("got version %q, want %q", got, version)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 5 || list.Tools[0].Name != "search_tools" {
				t.Fatalf("got %v tools and %v, want five in order", list, err)
			}
			if res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "x"}); res.IsError {
				t.Errorf("run_code: got %s", textOf(res))
			}
			if id := runs.lastRequest().Caller.Session; !strings.HasPrefix(id, "ses_") || len(id) != len("ses_")+32 {
				t.Errorf("got session %q, want ses_ and 32 digits", id)
			}
		})
	}
}

func TestHTTPSessionsDoNotSeeEachOthersRuns(t *testing.T) {
	url, _ := overHTTP(t)
	one, other := connectHTTP(t, url, "2025-11-25"), connectHTTP(t, url, "2025-11-25")
	going := runIDOf(callTool(t, one, "run_code", map[string]any{"language": "node", "code": "wait",
		"background": true}))
	done := runIDOf(callTool(t, one, "run_code", map[string]any{"language": "node", "code": "x"}))
	for _, run := range []string{going, done} {
		mine, theirs := callTool(t, one, "get_run", map[string]any{"run_id": run}),
			callTool(t, other, "get_run", map[string]any{"run_id": run})
		if got := mine.StructuredContent.(map[string]any)["state"]; got == "unknown" {
			t.Errorf("%s: got state %v in its own session", run, got)
		}
		if got := theirs.StructuredContent.(map[string]any)["state"]; got != "unknown" {
			t.Errorf("%s: got state %v in another session, want unknown", run, got)
		}
	}
}

func TestHTTPSessionsEnd(t *testing.T) {
	url, runs := overHTTP(t)
	one, other := connectHTTP(t, url, "2025-11-25"), connectHTTP(t, url, "2025-11-25")
	for range 2 {
		callTool(t, one, "run_code", map[string]any{"language": "python", "code": "x"})
	}
	ended := runs.lastRequest().Caller.Session
	callTool(t, other, "run_code", map[string]any{"language": "python", "code": "x"})
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-runs.left; got != ended {
		t.Errorf("ended: got %q, want %q", got, ended)
	}
	for len(runs.left) != 0 {
		if got := <-runs.left; got != ended {
			t.Errorf("ended: got %q too, want %q alone", got, ended)
		}
	}
}

func TestSessionsWithoutAnIDEndWithTheServer(t *testing.T) {
	s, runs := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	callTool(t, session, "run_code", map[string]any{"language": "python", "code": "x"})
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got, want := <-runs.left, runs.lastRequest().Caller.Session; got != want {
		t.Errorf("ended: got %q, want %q", got, want)
	}
}

func TestCancellingAnHTTPRequestEndsItsRun(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			url, runs := overHTTP(t)
			session := connectHTTP(t, url, version)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-runs.waiting
				cancel()
			}()
			if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code",
				Arguments: map[string]any{"language": "python", "code": "wait"}}); err == nil {
				t.Error("got a result, want the call cancelled")
			}
			<-runs.ended // blocks for ever when the run goes on
		})
	}
}

func TestHTTPRefusesWhatAWebPageCouldSend(t *testing.T) {
	s, _ := newServer(t)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for name, c := range map[string]struct {
		method, host string
		headers      map[string]string
		want         int
	}{
		"a program on this machine": {"POST", "127.0.0.1:8080", nil, 200},
		"by name":                   {"POST", "localhost:8080", nil, 200},
		"over IPv6":                 {"POST", "[::1]:8080", nil, 200},
		"a page of our own origin": {"POST", "localhost:8080",
			map[string]string{"Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}, 200},
		"a name that was rebound":   {"POST", "evil.example:8080", nil, 403},
		"a name that looks like us": {"POST", "localhost.evil.example", nil, 403},
		"another machine's address": {"POST", "192.0.2.1:8080", nil, 403},
		"no host":                   {"POST", "", nil, 403},
		"a foreign page": {"POST", "localhost:8080", map[string]string{"Origin": "https://evil.example"},
			403},
		"a page on another port": {"POST", "localhost:8080", map[string]string{"Origin": "http://localhost:9090"},
			403},
		"a sandboxed page": {"POST", "localhost:8080", map[string]string{"Origin": "null"}, 403},
		"a foreign page, by its mark": {"POST", "localhost:8080", map[string]string{"Sec-Fetch-Site": "cross-site"},
			403},
		"a foreign page reading": {"GET", "localhost:8080", map[string]string{"Origin": "https://evil.example"}, 403},
		"a foreign page ending": {"DELETE", "localhost:8080", map[string]string{"Origin": "https://evil.example"},
			403},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), c.method, "/mcp", strings.NewReader(ping))
			r.Host = c.host
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for key, value := range c.headers {
				r.Header.Set(key, value)
			}
			w := httptest.NewRecorder()
			s.Handler(servertest.LocalUser("user:ann"), nil).ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("got status %d (%s), want %d", w.Code, strings.TrimSpace(w.Body.String()), c.want)
			}
		})
	}
}

// Close does not wait for hosts that have disconnected without ending their session.
func TestCloseEndsWhatHostsLeftBehind(t *testing.T) {
	s, runs := newServer(t)
	h := httptest.NewServer(s.Handler(servertest.LocalUser("user:ann"), nil))
	t.Cleanup(h.Close)
	session := connectHTTP(t, h.URL, "2025-11-25")
	callTool(t, session, "run_code", map[string]any{"language": "node", "code": "wait", "background": true})
	<-runs.waiting
	own := runs.lastRequest().Caller.Session
	s.Close()
	if got := <-runs.left; got != own {
		t.Errorf("ended: got %q, want %q", got, own)
	}
}

// Refusals of the SDK have the same format as all other error responses.
func TestHTTPRefusalsHaveOneForm(t *testing.T) {
	url, _ := overHTTP(t)
	for name, test := range map[string]struct {
		method string
		header map[string]string
		body   string
		status int
		code   string
	}{
		"a stream without a session": {"GET", map[string]string{"Accept": "text/event-stream"}, "",
			http.StatusBadRequest, "bad_request"},
		"a stream that cannot be read": {"GET", nil, "", http.StatusBadRequest, "bad_request"},
		"the end of no session":        {"DELETE", nil, "", http.StatusBadRequest, "bad_request"},
		"the end of an unknown session": {"DELETE", map[string]string{"Mcp-Session-Id": "x"}, "", http.StatusNotFound,
			"not_found"},
		"a method that there is not": {"PUT", nil, "{}", http.StatusMethodNotAllowed, "method_not_allowed"},
		"a body of another kind": {"POST",
			map[string]string{"Content-Type": "text/plain", "Accept": "application/json, text/event-stream"}, "{}",
			http.StatusUnsupportedMediaType, "unsupported_media_type"},
		"an answer that is not accepted": {"POST",
			map[string]string{"Content-Type": "application/json", "Accept": "text/html"}, "{}", http.StatusBadRequest,
			"bad_request"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, url, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range test.header {
			r.Header.Set(key, value)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		res.Body.Close()
		var told problem.Body
		if failed := json.Unmarshal(raw, &told); err != nil || failed != nil || res.StatusCode != test.status ||
			told.Error.Code != test.code ||
			told.Error.Message == "" || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %d %q %s, want %d and the code %s", name, res.StatusCode, res.Header.Get("Content-Type"),
				raw, test.status, test.code)
		}
	}
}
