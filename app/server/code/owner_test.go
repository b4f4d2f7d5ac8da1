package code

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// tokens are the credentials of callers on one address. Two are of one person,
// and two people have one name with different issuers.
var tokens = map[string]caller.Caller{
	"t-ann": {Principal: "ann", Kind: caller.User, Issuer: "https://a.example", Session: "token-1",
		Scopes: []string{caller.ScopeRun}},
	"t-ann-2": {Principal: "ann", Kind: caller.User, Issuer: "https://a.example", Session: "token-2",
		Scopes: []string{caller.ScopeRun}},
	"t-ann-b": {Principal: "ann", Kind: caller.User, Issuer: "https://b.example", Session: "token-1",
		Scopes: []string{caller.ScopeRun}},
	"t-agent": {Principal: "ann", Kind: caller.Agent, Issuer: "https://a.example", Session: "token-1",
		Scopes: []string{caller.ScopeRun}},
	"t-nobody": {Principal: "", Kind: caller.User, Session: "token-9", Scopes: []string{caller.ScopeRun}},
}

// byToken identifies a caller by its bearer token.
func byToken(r *http.Request) (caller.Caller, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if c, known := tokens[token]; ok && known {
		return c, nil
	}
	return caller.Caller{}, errors.New("no token")
}

// party is one caller with its client.
type party struct {
	name    string
	session *mcp.ClientSession
}

// parties connects callers of every kind to one server in the given revision: two on stdio, and one
// over HTTP for each token.
func parties(t *testing.T, s *Server, version string, opts *mcp.ClientOptions) []party {
	t.Helper()
	web := httptest.NewServer(s.Handler(byToken, nil))
	t.Cleanup(web.Close)
	all := []party{{"stdio 1", connect(t, s, version, opts)}, {"stdio 2", connect(t, s, version, opts)}}
	for _, token := range []string{"t-ann", "t-ann-2", "t-ann-b", "t-agent"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
		session, err := client.Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: testenv.Bearer(token)},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("connecting with %s in %s: %v", token, version, err)
		}
		t.Cleanup(func() { session.Close() })
		all = append(all, party{token, session})
	}
	return all
}

// shape returns an answer without the run's ID, for comparison.
func shape(t *testing.T, res *mcp.CallToolResult, id string) string {
	t.Helper()
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), id, "(the ID)")
}

// Every caller can access its own runs with every tool. For a run of another caller it gets the
// same answer as for a run that does not exist.
func TestCallersReachTheirOwnRunsOnly(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s, runs := newServer(t)
			all := parties(t, s, version, nil)
			owned := map[string][]string{} // run IDs by owner
			for _, p := range all {
				for _, args := range []map[string]any{
					{"language": "python", "code": "wait", "background": true},
					{"language": "python", "code": "queue", "background": true},
					{"language": "python", "code": "x", "background": true},
					{"language": "python", "code": "x"}, {"language": "python", "code": "fail"},
				} {
					res := callTool(t, p.session, "run_code", args)
					if args["code"] == "wait" || args["code"] == "queue" {
						<-runs.waiting
					}
					owned[p.name] = append(owned[p.name], runIDOf(res))
				}
			}
			const unknown = "run_00000000000000000000000000000000"
			for _, tool := range []string{"get_run", "cancel_run"} {
				for _, p := range all {
					want := shape(t, callTool(t, p.session, tool, map[string]any{"run_id": unknown}), unknown)
					for owner, ids := range owned {
						for i, id := range ids {
							if owner == p.name {
								continue
							}
							if got := shape(t, callTool(t, p.session, tool, map[string]any{"run_id": id}),
								id); got != want {
								t.Errorf("%s by %s of run %d of %s: got %s, want %s", tool, p.name, i, owner, got, want)
							}
						}
					}
				}
			}
			for _, p := range all { // the calls above have not ended a run
				for i, id := range owned[p.name] {
					state := structuredOf(callTool(t, p.session, "get_run", map[string]any{"run_id": id}))["state"]
					if want := []string{"running", "queued"}; i < len(want) && state != want[i] {
						t.Errorf("run %d of %s: got state %v, want %s", i, p.name, state, want[i])
					}
					if got := structuredOf(callTool(
						t, p.session, "cancel_run", map[string]any{"run_id": id}))["cancelled"]; i < 2 && got != true {
						t.Errorf("run %d of %s: got cancelled %v by its owner, want true", i, p.name, got)
					}
				}
			}
		})
	}
}

// A question is sent to the host of the caller whose run asks it, even if other runs have the same
// code, and only that host's answer counts.
func TestQuestionsReachTheirOwnCaller(t *testing.T) {
	for _, version := range askingVersions {
		t.Run(version, func(t *testing.T) {
			s, _ := newAskingServer(t)
			web := httptest.NewServer(s.Handler(byToken, nil))
			t.Cleanup(func() { web.Close(); s.Close() })
			const rounds = 8
			answers := make(chan string, 4*rounds)
			for i, token := range []string{"t-ann", "t-ann-2", "t-ann-b", "t-agent"} {
				decision := []string{choiceOnce, choiceRun, choiceDeny, choiceOnce}[i]
				client := mcp.NewClient(&mcp.Implementation{Name: "host-" + token, Version: "1"}, &mcp.ClientOptions{
					ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
					},
				})
				session, err := client.Connect(t.Context(),
					&mcp.StreamableClientTransport{Endpoint: web.URL,
						HTTPClient: testenv.Bearer(token)},
					&mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				for range rounds {
					go func() { // the code is equal everywhere
						res, err := session.CallTool(
							t.Context(), &mcp.CallToolParams{Name: "run_code",
								Arguments: map[string]any{"language": "python", "code": "ask 2"}})
						if err != nil {
							answers <- err.Error()
							return
						}
						c := tokens[token]
						want := map[string]string{choiceOnce: "approved, for call",
							choiceRun: "approved, for run", choiceDeny: "denied, for call"}[decision] +
							", by " + c.Name() + ", through host-" + token + ", error <nil>"
						if c.Kind == caller.Agent { // no agent approves what it does itself
							want = "nobody"
						}
						answers <- cmp.Diff([]any{want, want}, dataOf(res))
					}()
				}
			}
			for range 4 * rounds {
				if diff := <-answers; diff != "" {
					t.Errorf("verdicts differ (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// manual connects a caller whose client shows each round of a call.
func manual(t *testing.T, url, token string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}},
		},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url,
		HTTPClient: testenv.Bearer(token)},
		&mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// A caller with the request state of another caller cannot answer that caller's questions, and
// does not change its run.
func TestARequestStateIsOfOneCaller(t *testing.T) {
	s, _ := newAskingServer(t)
	web := httptest.NewServer(s.Handler(byToken, nil))
	t.Cleanup(func() { web.Close(); s.Close() })
	ann := manual(t, web.URL, "t-ann")
	state := bothAsked(t, ann)
	const want = "the requestState belongs to no call that waits for an answer\nhint: send the call again without it"
	if res := askTwo(t, manual(t, web.URL, "t-agent"), "ask 2", state, "apr_0", "apr_1"); !strings.Contains(
		fmt.Sprint(dataOf(res)), "nobody nobody") {
		t.Errorf("A-048, an agent: got %s, want no answer of its own to count", textOf(res))
	}
	for _, token := range []string{"t-ann-2", "t-ann-b"} {
		res := askTwo(t, manual(t, web.URL, token), "ask 2", state, "apr_0", "apr_1")
		if !res.IsError || textOf(res) != want {
			t.Errorf("%s: got %q, want %q", token, textOf(res), want)
		}
	}
	if res := askTwo(t, ann, "ask 2", state, "apr_0", "apr_1"); res.IsError ||
		!strings.Contains(fmt.Sprint(dataOf(res)), "approved") {
		t.Errorf("got %s, want the owner's answer to count", textOf(res))
	}
}

// If one caller has two runs of the same code, an answer counts for the run whose question was
// shown.
func TestAnAnswerIsForItsRun(t *testing.T) {
	s, runs := newAskingServer(t)
	session := roundTrips(t, s)
	first, second := bothAsked(t, session), bothAsked(t, session)
	done := askTwo(t, session, "ask 2", second, "apr_0", "apr_1")
	if !strings.Contains(fmt.Sprint(dataOf(done)), "approved") {
		t.Fatalf("got %s, want the second run approved", textOf(done))
	}
	if going := states(runs); !slices.Equal(going, []string{"done", "running"}) {
		t.Errorf("got states %v, want the first run still waiting", going)
	}
	if res := askTwo(t, session, "ask 2", first, "apr_0", "apr_1"); runIDOf(res) == runIDOf(done) || res.IsError {
		t.Errorf("got %s, want the first run's own outcome", textOf(res))
	}
}

// states returns the states of all runs, sorted.
func states(runs *fakeRuns) []string {
	var all []string
	for _, run := range runs.List(everyone) {
		all = append(all, string(run.Status().State))
	}
	slices.Sort(all)
	return all
}

// A protocol session belongs to the identity that opened it.
func TestASessionCannotBeTakenOver(t *testing.T) {
	s, _ := newServer(t)
	web := httptest.NewServer(s.Handler(byToken, nil))
	t.Cleanup(web.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL,
		HTTPClient: testenv.Bearer("t-ann")},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	id := runIDOf(callTool(t, session, "run_code", map[string]any{"language": "python", "code": "x"}))
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		for token, want := range map[string]int{"t-ann-b": 404, "t-agent": 404, "t-nobody": 401, "": 401,
			"t-unknown": 401} {
			body := fmt.Sprintf(
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_run","arguments":{"run_id":%q}}}`,
				id)
			r, err := http.NewRequestWithContext(t.Context(), method, web.URL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Mcp-Session-Id", session.ID())
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
			res, err := testenv.Bearer(token).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("%s with %q: got status %d, want %d", method, token, res.StatusCode, want)
			}
		}
	}
	if got := structuredOf(callTool(t, session, "get_run", map[string]any{"run_id": id}))["state"]; got != "done" {
		t.Errorf("got state %v after all that, want the session alive", got)
	}
}

// Identity claims in the messages of a caller have no effect.
func TestNothingThatACallerWritesSaysWhoItIs(t *testing.T) {
	s, runs := newServer(t)
	session := connect(t, s, "2025-11-25", nil)
	for _, meta := range []mcp.Meta{
		{}, {"principal": "root"},
		{"io.github.airlock-mcp/caller": map[string]any{"Principal": "root", "Kind": "local", "Session": "ses_1"}},
		{"io.modelcontextprotocol/clientInfo": map[string]any{"name": "root"}},
	} {
		params := &mcp.CallToolParams{Meta: meta, Name: "run_code",
			Arguments: map[string]any{"language": "python", "code": "x"}}
		if _, err := session.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		if got := runs.lastRequest().Caller; got.Principal != "user:ann" || got.Kind != caller.Local ||
			!strings.HasPrefix(got.Session, "ses_") || got.Session == "ses_1" {
			t.Errorf("with %v: got caller %+v, want the user of stdio", meta, got)
		}
	}
}
