package daemon

import (
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// untilIdle waits until no run is in progress.
func (s *served) untilIdle() {
	s.t.Helper()
	testenv.Await(s.t, "no run is in progress", func() bool { return s.daemon.opts.System.Runs().Going() == 0 })
}

// A run in the background made further calls after its token was revoked, and so did the
// agents that the token had registered (issue 23). Both end when the token loses its rights for
// any reason, with and without sessions of the protocol, even if no further request is made.
func TestWhatATokenBeganEndsWithIt(t *testing.T) {
	g := newGate(t)
	s := serve(t, g.keys)
	s.untilReady()
	tokens := s.daemon.known.Tokens()
	for name, test := range map[string]struct {
		revision string
		agent    bool
		end      func(id string) error
	}{
		"revoked, with a session": {"2025-11-25", false,
			func(id string) error { return tokens.Revoke(t.Context(), id) }},
		"revoked, without a session": {"2026-07-28", false,
			func(id string) error { return s.daemon.known.RevokeToken(t.Context(), id, "ann") }},
		"revoked, its agent": {"2025-11-25", true, func(id string) error { return tokens.Revoke(t.Context(), id) }},
		"expired":            {"2025-11-25", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			grant := auth.Grant{Name: "host", Scopes: []string{auth.ScopeRun, auth.ScopeAgents}}
			if test.end == nil {
				grant.Expires = time.Now().Add(10 * time.Second)
			}
			made, value, err := tokens.Create(t.Context(), grant)
			if err != nil {
				t.Fatal(err)
			}
			token := value.Reveal()
			if test.agent {
				who, err := s.daemon.identify.Token(t.Context(), value)
				if err != nil {
					t.Fatal(err)
				}
				_, secret, err := s.daemon.known.Register(t.Context(), agents.Registration{
					Name: "a", Type: agents.Trusted, PrincipalID: who.Name(),
					Permissions: agents.Permissions{AllowedTools: []string{"gate/enter"}},
					Inherited: agents.Inherited{Scopes: []string{auth.ScopeRun}, Credentials: who.Credentials,
						Expires: who.Expires()},
				}, who.Name())
				if err != nil {
					t.Fatal(err)
				}
				token = secret.Reveal()
			}
			session := s.connect(token, test.revision)
			started, text := s.run(session, map[string]any{"language": "python", "code": g.code, "background": true})
			if started["run_id"] == nil {
				t.Fatalf("got %v, %s", started, text)
			}
			runs := s.daemon.opts.System.Runs().All()
			run := runs[len(runs)-1]
			select {
			case <-g.arrived:
			case <-run.Done():
				status := run.Status()
				t.Fatalf("the run made no call: %+v, %v", status.Outcome, status.Err)
			}
			if test.end != nil {
				if err := test.end(made.ID); err != nil {
					t.Fatal(err)
				}
			}
			s.untilIdle() // its call goes on until the run is ended: nothing opens the gate
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_servers"}); err == nil {
				t.Error("a request of the session was answered")
			}
			if status := s.ask(token, "/mcp"); status != http.StatusUnauthorized {
				t.Errorf("got %d for a new request, want %d", status, http.StatusUnauthorized)
			}
		})
	}
}

// ask sends a request with a token and returns the status of the answer.
func (s *served) ask(token, path string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}
