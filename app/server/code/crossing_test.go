package code

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// post sends one message as a client with a token, in a session or without one,
// and returns the status.
func post(t *testing.T, url, token, session, version, message string) int {
	t.Helper()
	return request(t, http.MethodPost, url, token, session, version, message)
}

// request is post for any method.
func request(t *testing.T, method, url, token, session, version, message string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", version)
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	res, err := testenv.Bearer(token).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body) // the status is all that counts
	return res.StatusCode
}

func dial(t *testing.T, url, token, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "host-" + token, Version: "1"}, opts)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url,
		HTTPClient: testenv.Bearer(token)},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting with %s in %s: %v", token, version, err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// A cancellation ends only requests of its sender, even if another request has the same ID.
func TestACancellationReachesItsOwnCaller(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s, runs := newServer(t)
			web := httptest.NewServer(s.Handler(byToken, nil))
			t.Cleanup(web.Close)
			ann, bob := dial(t, web.URL, "t-ann", version, nil), dial(t, web.URL, "t-agent", version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			calls.Go(func() {
				if _, err := ann.CallTool(ctx, &mcp.CallToolParams{Name: "run_code",
					Arguments: map[string]any{"language": "python", "code": "wait"}}); err == nil {
					t.Error("got a result, want ann's own cancellation")
				}
			})
			<-runs.waiting
			for id := range 20 {
				for _, form := range []string{"%d", `"%d"`} {
					message := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+
						form+`}}`, id)
					post(t, web.URL, "t-agent", bob.ID(), version, message)
					if ann.ID() != "" {
						if status := post(t, web.URL, "t-agent", ann.ID(), version,
							message); status != http.StatusNotFound {
							t.Fatalf("in ann's session: got status %d, want %d", status, http.StatusNotFound)
						}
					}
				}
			}
			if got := runs.List(everyone); len(got) != 1 || got[0].Status().State != "running" || len(runs.ended) != 0 {
				t.Errorf("got that ann's run was ended by bob")
			}
			cancel()
			calls.Wait()
			<-runs.ended
		})
	}
}

// Progress is sent to the caller of the run, even if another caller uses the same progress token.
func TestProgressReachesItsOwnCaller(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s, runs := newServer(t)
			web := httptest.NewServer(s.Handler(byToken, nil))
			t.Cleanup(web.Close)
			var strayed atomic.Int32
			heard := make(chan struct{}, 64)
			ann := dial(t, web.URL, "t-ann", version, &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context,
					*mcp.ProgressNotificationClientRequest) {
					heard <- struct{}{}
				},
			})
			bob := dial(t, web.URL, "t-agent", version, &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context,
					*mcp.ProgressNotificationClientRequest) {
					strayed.Add(1)
				},
			})
			ctx, cancel := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			wait := func(session *mcp.ClientSession, token any) {
				params := &mcp.CallToolParams{Name: "run_code",
					Arguments: map[string]any{"language": "python", "code": "wait"}}
				if token != nil {
					params.SetProgressToken(token)
				}
				calls.Go(func() { _, _ = session.CallTool(ctx, params) }) // it is cancelled
				<-runs.waiting
			}
			wait(bob, nil) // bob asks for no progress
			wait(ann, "token")
			<-heard
			<-heard
			cancel()
			calls.Wait()
			if got := strayed.Load(); got != 0 {
				t.Errorf("got %d notifications that were ann's at bob's", got)
			}
		})
	}
}

// An answer counts only if it comes from the host that was asked, even if the request IDs are
// equal.
func TestAnAnswerFromAnotherSessionDoesNotCount(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			s, _ := newAskingServer(t)
			web := httptest.NewServer(s.Handler(byToken, nil))
			t.Cleanup(func() { web.Close(); s.Close() })
			asked, answer := make(chan struct{}), make(chan struct{})
			ann := dial(t, web.URL, "t-ann", version, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					close(asked)
					<-answer
					return &mcp.ElicitResult{Action: "decline"}, nil
				},
			})
			decline := sync.OnceFunc(func() { close(answer) })
			t.Cleanup(decline) // before her session is closed, which waits for it
			bob := dial(t, web.URL, "t-agent", version, nil)
			done := make(chan string, 1)
			go func() {
				res, err := ann.CallTool(t.Context(),
					&mcp.CallToolParams{Name: "run_code",
						Arguments: map[string]any{"language": "python", "code": "ask 1"}})
				if err != nil {
					done <- err.Error()
					return
				}
				done <- fmt.Sprint(dataOf(res))
			}()
			<-asked
			for id := range 20 {
				for _, form := range []string{"%d", `"%d"`} {
					message := fmt.Sprintf(`{"jsonrpc":"2.0","id":`+form+
						`,"result":{"action":"accept","content":{"decision":%q}}}`, id, choiceRun)
					post(t, web.URL, "t-agent", bob.ID(), version, message)
					if status := post(t, web.URL, "t-agent", ann.ID(), version,
						message); status != http.StatusNotFound {
						t.Fatalf("in ann's session: got status %d, want %d", status, http.StatusNotFound)
					}
				}
			}
			decline()
			if said := <-done; !strings.Contains(said, "denied") {
				t.Errorf("got %s, want ann's own answer", said)
			}
		})
	}
}

// A request with an unknown credential is refused in every revision and for every method.
func TestCallersWithoutACredentialGetNothing(t *testing.T) {
	s, runs := newServer(t)
	web := httptest.NewServer(s.Handler(byToken, nil))
	t.Cleanup(web.Close)
	for _, version := range versions {
		for _, token := range []string{"", "t-nobody", "t-unknown", "verified", "-"} {
			for _, message := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version +
					`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code",` +
					`"arguments":{"language":"python","code":"x"},` +
					`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `"}}}`,
			} {
				if status := post(t, web.URL, token, "", version, message); status != http.StatusUnauthorized {
					t.Errorf("%s with %q: got status %d, want %d", version, token, status, http.StatusUnauthorized)
				}
			}
		}
	}
	if got := runs.List(everyone); len(got) != 0 {
		t.Errorf("got %d runs, want none", len(got))
	}
}

// If a host ends its session, its runs end, but those of other sessions do not.
func TestTheEndOfASessionEndsItsRuns(t *testing.T) {
	for _, version := range versions[:len(versions)-1] { // the last has no sessions
		t.Run(version, func(t *testing.T) {
			s, runs := newServer(t)
			web := httptest.NewServer(s.Handler(byToken, nil))
			t.Cleanup(web.Close)
			ann, bob := dial(t, web.URL, "t-ann", version, nil), dial(t, web.URL, "t-agent", version, nil)
			var calls sync.WaitGroup
			wait := func(session *mcp.ClientSession, code string, background bool) {
				args := map[string]any{"language": "python", "code": code, "background": background}
				calls.Go(func() {
					// it is cut off
					_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code", Arguments: args})
				})
				<-runs.waiting
			}
			wait(bob, "wait", true)
			wait(ann, "wait", true)
			wait(ann, "wait", false)
			wait(ann, "queue", false)
			for token, want := range map[string]int{"t-agent": http.StatusNotFound,
				"t-unknown": http.StatusUnauthorized} {
				if status := request(t, http.MethodDelete, web.URL, token, ann.ID(), version, ""); status != want {
					t.Errorf("ended by %s: got status %d, want %d", token, status, want)
				}
			}
			if len(runs.ended) != 0 {
				t.Error("got runs ended by another")
			}
			if status := request(t, http.MethodDelete, web.URL, "t-ann", ann.ID(), version,
				""); status != http.StatusNoContent {
				t.Errorf("ended by its owner: got status %d, want %d", status, http.StatusNoContent)
			}
			for range 3 {
				<-runs.ended
			}
			calls.Wait()
			if got := runs.List(everyone); len(got) != 1 || got[0].Status().State != "running" {
				t.Errorf("got %d runs left, want bob's alone", len(got))
			}
		})
	}
}
