package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// wallet has one token after the other; without one it returns missing.
type wallet struct {
	mu      sync.Mutex
	tokens  []string // the first is the one that is sent
	missing *upstream.SignInError
	refused int  // calls of Refused
	isReady bool // Ready was called
}

func (w *wallet) Bind() upstream.Signer { return w }

// Ready fails while the time of the server runs: the authorization server may be slow.
func (w *wallet) Ready(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, isLimited := ctx.Deadline(); isLimited {
		return errors.New("the time of the server runs")
	}
	w.isReady = true
	if len(w.tokens) == 0 {
		return w.missing
	}
	return nil
}

func (w *wallet) Changed() bool { return false }

func (w *wallet) Sign(_ context.Context, request *http.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isReady {
		return errors.New("the connection is not ready")
	}
	if len(w.tokens) == 0 {
		return w.missing
	}
	request.Header.Set("Authorization", "Bearer "+w.tokens[0])
	return nil
}

func (w *wallet) Refused(context.Context, *http.Request, *http.Response) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused++
	if w.tokens = w.tokens[1:]; len(w.tokens) == 0 {
		return false, w.missing
	}
	return true, nil
}

func (w *wallet) set(tokens ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens, w.refused = tokens, 0
}

// guarded is a server that takes one token.
func guarded(t *testing.T, stateless bool) (address string, bodies *sync.Map) {
	t.Helper()
	server, bodies := sdkServer(), &sync.Map{}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: stateless})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodies.Store(r.Header.Get("Authorization"), r.ContentLength)
		if r.Header.Get("Authorization") != "Bearer good" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL + "/mcp", bodies
}

func TestRequestsAreSigned(t *testing.T) {
	for name, stateless := range map[string]bool{"sessions (2025-11-25)": false, "stateless (2026-07-28)": true} {
		t.Run(name, func(t *testing.T) {
			w := &wallet{missing: &upstream.SignInError{ServerID: "remote", Why: "its user has not signed in",
				Command: "airlock login remote"}}
			address, bodies := guarded(t, stateless)
			set := connect(t, nil, upstream.Config{ID: "remote", URL: address, Credentials: w})
			if err := set.Problem("remote"); !errors.Is(err, upstream.ErrSignIn) ||
				!strings.Contains(err.Error(), "`airlock login remote`") {
				t.Errorf("before: got %v, want the command that signs in", err)
			}
			if _, sent := bodies.Load(""); sent {
				t.Error("a request was sent that could not be signed")
			}
			wantsSignIn(t, set)

			w.set("old", "good") // the first is refused, and the request sent again, whole
			if raw, err := set.Call(t.Context(), "remote", "echo", []byte(`{"n":1}`)); err != nil ||
				text(t, raw) != `{"n":1}` {
				t.Errorf("after: got %s, %v", raw, err)
			}
			if n, _ := bodies.Load("Bearer old"); n == nil || w.refused != 1 {
				t.Errorf("got %v bytes with the old token, %d refusals", n, w.refused)
			}

			w.set()
			wantsSignIn(t, set)
			if got := names(t, set); len(got) != 1 || got[0] != "echo" {
				t.Errorf("got the tools %q, want those that were known", got)
			}
			w.set("bad", "worse", "worst", "never")
			var call *upstream.CallError
			if _, err := set.Call(t.Context(), "remote", "echo", nil); !errors.As(err, &call) || call.Retryable ||
				w.refused > 6 {
				t.Errorf("got %v after %d refusals, want one error", err, w.refused)
			}
		})
	}
}

func wantsSignIn(t *testing.T, set *upstream.Set) {
	t.Helper()
	_, err := set.Call(t.Context(), "remote", "echo", nil)
	var call *upstream.CallError
	if !errors.As(err, &call) || call.Type != upstream.ToolError || call.Retryable ||
		!strings.Contains(call.Message, "Tell the user to run `airlock login remote`") {
		t.Errorf("got %v, want an error for the user that is not worth another try", err)
	}
}

func TestASignInThatCannotBeUsedNow(t *testing.T) {
	w := &wallet{missing: &upstream.SignInError{ServerID: "remote",
		Why: "its authorization server cannot be reached now", Temporary: true}}
	address, _ := guarded(t, true)
	set := connect(t, nil, upstream.Config{ID: "remote", URL: address, Credentials: w})
	_, err := set.Call(t.Context(), "remote", "echo", nil)
	var call *upstream.CallError
	if !errors.As(err, &call) || call.Type != upstream.TransientNetwork || !call.Retryable ||
		strings.Contains(call.Message, "airlock login") {
		t.Errorf("got %v, want an error that may pass", err)
	}
}

// A server can send a client elsewhere; its token stays.
func TestATokenLeavesTheOriginNever(t *testing.T) {
	var mu sync.Mutex
	var elsewhere []string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+"/mcp", status)
		}))
		w := &wallet{tokens: []string{"good"}}
		set := connect(t, nil, upstream.Config{ID: "remote", URL: web.URL + "/mcp", Credentials: w})
		if set.Problem("remote") == nil {
			t.Errorf("%d: a redirect to another origin was followed", status)
		}
		web.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	if len(elsewhere) != 0 {
		t.Errorf("another origin got %q", elsewhere)
	}
}
