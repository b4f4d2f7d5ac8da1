package oauth_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
)

// gatedServer is an MCP server that answers a call of its tool with a refusal, but not before the test lets it.
type gatedServer struct {
	mcp     http.Handler
	refusal func(w http.ResponseWriter) // of the next call; nil: calls are accepted
	arrived chan struct{}               // receives a value when a call has arrived
	release chan struct{}               // lets it be answered

	mu    sync.Mutex
	calls []string // the Authorization header of each call that was carried out
}

func newGatedServer(stateless bool) *gatedServer {
	g := &gatedServer{arrived: make(chan struct{}, 1), release: make(chan struct{})}
	server := mcp.NewServer(&mcp.Implementation{Name: "calendar", Version: "1"}, nil)
	type none struct{}
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(_ context.Context, r *mcp.CallToolRequest,
		_ none) (*mcp.CallToolResult, none, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls = append(g.calls, r.Extra.Header.Get("Authorization"))
		return nil, none{}, nil
	})
	g.mcp = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: stateless})
	return g
}

func (g *gatedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.mu.Lock()
	refusal := g.refusal
	if bytes.Contains(body, []byte(`"tools/call"`)) {
		g.refusal = nil
	} else {
		refusal = nil
	}
	g.mu.Unlock()
	if refusal != nil {
		g.arrived <- struct{}{}
		<-g.release
		refusal(w)
		return
	}
	g.mcp.ServeHTTP(w, r)
}

func (g *gatedServer) carriedOut() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.calls...)
}

// A server keeps a call waiting and then refuses it. Meanwhile a person signs in, out, or in again, with another
// process (issue 23). The call must not be sent again with what the person has signed in to: it was made for another
// account, or for none.
func TestACallInFlightIsNotSentWithALaterSignIn(t *testing.T) {
	unauthorized := func(w http.ResponseWriter) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "no", http.StatusUnauthorized)
	}
	tooFewRights := func(w http.ResponseWriter) {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
		http.Error(w, "no", http.StatusForbidden)
	}
	login := func(t *testing.T, s *oauth.Source) {
		if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
			t.Error(err)
		}
	}
	logout := func(t *testing.T, s *oauth.Source) {
		if _, err := s.Logout(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, tc := range []struct {
		name      string
		before    func(*testing.T, *oauth.Source)
		refusal   func(http.ResponseWriter)
		meanwhile func(*testing.T, *oauth.Source)
		want      string // in the error of the call
		signedIn  bool   // afterwards
	}{
		{"no sign-in, then one", nil, unauthorized, login, "was changed while the call was in flight", true},
		{"a sign-in, then another", login, unauthorized, login, "was changed while the call was in flight", true},
		{"a sign-in, then none", login, unauthorized, logout, "has not signed in", false},
		{"too few rights, then another sign-in", login, tooFewRights, login, "was changed while the call was in flight",
			true},
		{"too few rights, then none", login, tooFewRights, logout, "has not signed in", false},
	} {
		for revision, stateless := range map[string]bool{"with a session": false, "without": true} {
			t.Run(tc.name+", "+revision, func(t *testing.T) {
				w, g, directory := newWorld(t), newGatedServer(stateless), t.TempDir()
				w.mcp = g
				daemon, terminal := source(t, w, directory, nil, nil), source(t, w, directory, nil, nil)
				if tc.before != nil {
					tc.before(t, terminal)
				}
				set, err := upstream.New([]upstream.Config{{ID: "crm", URL: w.url(), Credentials: daemon}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { set.Close() })
				set.Connect(t.Context())
				g.refusal = tc.refusal
				failed := make(chan error, 1)
				go func() {
					_, err := set.Call(t.Context(), "crm", "add", nil)
					failed <- err
				}()
				<-g.arrived
				tc.meanwhile(t, terminal)
				close(g.release)
				var call *upstream.CallError
				if err := <-failed; !errors.As(err, &call) || !strings.Contains(call.Message, tc.want) ||
					call.Retryable != tc.signedIn {
					t.Errorf("the call: got %v, want %q", err, tc.want)
				}
				if got := g.carriedOut(); len(got) != 0 {
					t.Errorf("the call was carried out with %q", got)
				}
				// A new call uses what is signed in to now, over a new connection.
				if _, err := set.Call(t.Context(), "crm", "add", nil); err != nil {
					t.Fatal(err)
				}
				if got := g.carriedOut(); len(got) != 1 || (got[0] != "") != tc.signedIn {
					t.Errorf("a new call was carried out with %q", got)
				}
			})
		}
	}
}

// A token that is refreshed belongs to the same sign-in.
func TestACallInFlightIsSentWithARefreshedToken(t *testing.T) {
	w, g := newWorld(t), newGatedServer(false)
	w.mcp = g
	s := source(t, w, t.TempDir(), nil, nil)
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	set, err := upstream.New([]upstream.Config{{ID: "crm", URL: w.url(), Credentials: s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	set.Connect(t.Context())
	g.refusal = func(w http.ResponseWriter) { http.Error(w, "no", http.StatusUnauthorized) }
	close(g.release)
	if _, err := set.Call(t.Context(), "crm", "add", nil); err != nil {
		t.Fatal(err)
	}
	if got := g.carriedOut(); len(got) != 1 || got[0] != "Bearer access-token-2" {
		t.Errorf("the call was carried out with %q, want the refreshed token", got)
	}
}

// Unsigned credentials add no token, also after a person has signed in.
func TestUnsignedCredentialsNeverSign(t *testing.T) {
	w, g := newWorld(t), newGatedServer(true)
	w.mcp = g
	s := source(t, w, t.TempDir(), nil, nil)
	set, err := upstream.New([]upstream.Config{{ID: "crm", URL: w.url(), Credentials: s.Unsigned()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Call(t.Context(), "crm", "add", nil); err != nil {
		t.Fatal(err)
	}
	g.refusal = func(w http.ResponseWriter) { http.Error(w, "no", http.StatusUnauthorized) }
	close(g.release)
	_, err = set.Call(t.Context(), "crm", "add", nil)
	var needed *upstream.SignInError
	if !errors.As(err, &needed) {
		t.Errorf("got %v, want that a sign-in is needed", err)
	}
	if got := g.carriedOut(); len(got) != 1 || got[0] != "" {
		t.Errorf("calls were carried out with %q", got)
	}
}
