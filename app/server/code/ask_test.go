package code

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/server/servertest"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// askingVersions are the revisions in which a host can be asked.
var askingVersions = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

func newAskingServer(t testing.TB) (*Server, *fakeRuns) {
	t.Helper()
	runs := newFakeRuns()
	runs.approvals = &fakeApprovals{askers: map[string]approval.Asker{}}
	s, err := New(newFakeTools(t), runs, Options{Version: "test", Principal: "user:ann", Approvals: runs.approvals})
	if err != nil {
		t.Fatal(err)
	}
	return s, runs
}

// person answers every question with the content of a form, and counts the questions.
func person(asked *atomic.Int32, action, decision string) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult,
		error) {
		asked.Add(1)
		if !strings.Contains(req.Params.Message, "delete_contact") || !strings.Contains(req.Params.Message, `"id": 7`) {
			return nil, fmt.Errorf("the question does not show what it is about: %s", req.Params.Message)
		}
		if action != "accept" {
			return &mcp.ElicitResult{Action: action}, nil
		}
		return &mcp.ElicitResult{Action: action, Content: map[string]any{"decision": decision}}, nil
	}}
}

func TestAPersonIsAskedThroughTheHost(t *testing.T) {
	for _, version := range askingVersions {
		for name, c := range map[string]struct{ action, decision, want string }{
			"yes, once": {"accept", choiceOnce,
				"approved, for call, by user:ann, through test, error <nil>"},
			"yes, for the run": {"accept", choiceRun,
				"approved, for run, by user:ann, through test, error <nil>"},
			"no": {"accept", choiceDeny,
				"denied, for call, by user:ann, through test, error <nil>"},
			"refused to answer": {"decline", "", "denied, for call, by user:ann, through test, error <nil>"},
			"closed the form": {"cancel", "",
				"closed without an answer, for call, by user:ann, through test, error <nil>"},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				var asked atomic.Int32
				s, _ := newAskingServer(t)
				session := connect(t, s, version, person(&asked, c.action, c.decision))
				res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "ask 3"})
				want := []any{c.want, c.want, c.want}
				if diff := cmp.Diff(want, dataOf(res)); diff != "" || asked.Load() != 3 {
					t.Errorf("asked %d times, verdicts differ (-want +got):\n%s", asked.Load(), diff)
				}
			})
		}
	}
}

// dataOf returns the data of a run.
func dataOf(res *mcp.CallToolResult) any {
	answer, _ := res.StructuredContent.(map[string]any)
	return answer["data"]
}

// A run in the background can also ask if the host accepts requests at any time.
func TestARunInTheBackgroundCanAsk(t *testing.T) {
	var asked atomic.Int32
	s, runs := newAskingServer(t)
	session := connect(t, s, "2025-11-25", person(&asked, "accept", choiceOnce))
	outcome := runs.outcome(
		t, runIDOf(callTool(t, session, "run_code",
			map[string]any{"language": "python", "code": "ask 1", "background": true})))
	if asked.Load() != 1 || !strings.Contains(string(outcome.Envelope.Result.Data), "approved") {
		t.Errorf("got %v, asked %d times, want one approval", outcome, asked.Load())
	}
}

func TestAHostThatCannotAskIsNotAsked(t *testing.T) {
	for _, version := range versions {
		s, _ := newAskingServer(t)
		session := connect(t, s, version, nil)
		res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "ask 1"})
		if diff := cmp.Diff([]any{"nobody"}, dataOf(res)); diff != "" {
			t.Errorf("%s: verdicts differ (-want +got):\n%s", version, diff)
		}
	}
}

func TestAPersonIsAskedOverHTTP(t *testing.T) {
	for _, version := range askingVersions {
		t.Run(version, func(t *testing.T) {
			s, _ := newAskingServer(t)
			h := httptest.NewServer(s.Handler(servertest.LocalUser("user:ann"), nil))
			t.Cleanup(func() {
				h.Close()
				s.Close()
			})
			var asked atomic.Int32
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"},
				person(&asked, "accept", choiceOnce))
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.URL},
				&mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			res := callTool(t, session, "run_code", map[string]any{"language": "python", "code": "ask 2"})
			want := "approved, for call, by user:ann, through test, error <nil>"
			if diff := cmp.Diff([]any{want, want}, dataOf(res)); diff != "" {
				t.Errorf("verdicts differ (-want +got):\n%s", diff)
			}
		})
	}
}

// roundTrips connects a client that shows the rounds of a call instead of
// answering by itself.
func roundTrips(t *testing.T, s *Server) *mcp.ClientSession {
	t.Helper()
	return connect(t, s, "2026-07-28", &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}},
		},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
}

// askTwo sends one round of a call that asks two questions.
func askTwo(t *testing.T, session *mcp.ClientSession, code, state string, answered ...string) *mcp.CallToolResult {
	t.Helper()
	answers := mcp.InputResponseMap{}
	for _, id := range answered {
		answers[id] = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": choiceOnce}}
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "run_code", Arguments: map[string]any{"language": "python", "code": code}, RequestState: state,
		InputResponses: answers,
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// bothAsked repeats rounds without an answer until both questions are asked.
func bothAsked(t *testing.T, session *mcp.ClientSession) (state string) {
	t.Helper()
	for {
		res := askTwo(t, session, "ask 2", state)
		if res.InputRequests == nil {
			t.Fatalf("got %s, want questions", textOf(res))
		}
		if state = res.RequestState; len(res.InputRequests) == 2 {
			return state
		}
	}
}

func TestOpenQuestionsAreAskedAgain(t *testing.T) {
	s, _ := newAskingServer(t)
	session := roundTrips(t, s)
	state := bothAsked(t, session)
	res := askTwo(t, session, "ask 2", state, "apr_1")
	if _, open := res.InputRequests["apr_0"]; !open || len(res.InputRequests) != 1 {
		t.Fatalf("got questions %v, want the one that is left", res.InputRequests)
	}
	res = askTwo(t, session, "ask 2", res.RequestState, "apr_0", "apr_1", "apr_unknown")
	want := "approved, for call, by user:ann, through test, error <nil>"
	if diff := cmp.Diff([]any{want, want}, dataOf(res)); diff != "" {
		t.Errorf("verdicts differ (-want +got):\n%s", diff)
	}
}

// A person who answers in the host after another has answered elsewhere gets a notice.
func TestALateAnswerIsToldSo(t *testing.T) {
	s, runs := newAskingServer(t)
	runs.elsewhere = make(chan struct{})
	session := roundTrips(t, s)
	state := bothAsked(t, session)
	close(runs.elsewhere) // the first question is decided at the command line
	for {
		res := askTwo(t, session, "ask 2", state) // no answer yet
		if len(res.InputRequests) == 1 {
			state = res.RequestState
			break
		}
		state = res.RequestState
	}
	res := askTwo(t, session, "ask 2", state, "apr_0", "apr_1")
	if text := textOf(res); !strings.Contains(text, "The answer to question apr_0 came too late") ||
		strings.Contains(text, "question apr_1 came") {
		t.Errorf("got %q, want to be told that the first answer does not count", text)
	}
}

func TestAStateCountsOnceAndForItsOwnCall(t *testing.T) {
	s, _ := newAskingServer(t)
	session := roundTrips(t, s)
	state := bothAsked(t, session)
	used := state
	state = askTwo(t, session, "ask 2", used).RequestState
	for name, c := range map[string]struct{ code, state string }{
		"used before":    {"ask 2", used},
		"of other code":  {"ask 20", state},
		"never given":    {"ask 2", "wait_0123456789abcdef0123456789abcdef"},
		"not even close": {"ask 2", "x"},
	} {
		res := askTwo(t, session, c.code, c.state, "apr_0", "apr_1")
		if want := "the requestState belongs to no call that waits for an answer\nhint: send the call again without " +
			"it"; !res.IsError || textOf(res) != want {
			t.Errorf("%s: got %q, want %q", name, textOf(res), want)
		}
	}
	if res := askTwo(t, session, "ask 2", state, "apr_0", "apr_1"); res.IsError {
		t.Errorf("got %s, want the run to have survived all that", textOf(res))
	}
}

// A run ends if its host does not return.
func TestAnAbandonedRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, runs := newAskingServer(t)
		ann := caller.Caller{Principal: "ann", Kind: caller.Local, Session: "ses_ann"}
		parked, err := s.parking.start(t.Context(),
			orchestrator.Request{Language: "python", Code: []byte("ask 2"), Caller: ann}, answering{by: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if asked, state := s.parking.await(t.Context(), parked); asked == nil || state == "" {
			t.Fatal("got no questions")
		}
		<-runs.ended
		if waited := time.Since(began); waited < time.Hour || waited > time.Hour+2*parkGrace {
			t.Errorf("the run ended after %v, want an hour and some grace", waited)
		}
		synctest.Wait()
		if len(s.parking.runs)+len(s.parking.waiting)+len(s.parking.asking) != 0 ||
			runs.approvals.asker(ann.Session) != nil {
			t.Error("want nothing left of the run")
		}
	})
}

func TestTheEndOfTheSessionEndsParkedRuns(t *testing.T) {
	s, runs := newAskingServer(t)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), in, out) }()
	send(t, toServer, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code",`+
		`"arguments":{"language":"python","code":"ask 1"},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`)
	line, err := bufio.NewReader(fromServer).ReadString('\n')
	if err != nil || !strings.Contains(line, `"resultType":"input_required"`) {
		t.Fatalf("got %q and %v, want a request for input", line, err)
	}
	toServer.Close()
	<-runs.ended
	if err := <-served; err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}

func TestCancellingAParkableCallEndsItsRun(t *testing.T) {
	s, runs := newAskingServer(t)
	session := roundTrips(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-runs.waiting
		cancel()
	}()
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code",
		Arguments: map[string]any{"language": "python", "code": "wait"}}); err == nil {
		t.Error("got a result, want the call cancelled")
	}
	<-runs.ended
}

// A question that is too long for a host is shortened, with a note about the omitted part.
func TestAQuestionThatIsTooLongIsShortened(t *testing.T) {
	q := approval.Question{ID: "apr_1",
		Subject: approval.Subject{Arguments: json.RawMessage(`"` + strings.Repeat("x", maxQuestion) + `"`)}}
	text := question(q, false).Message
	if len(text) > maxQuestion || !strings.Contains(text, "SHORTENED: 16,386 bytes, sha256:") ||
		!strings.Contains(text, "airlock approvals show apr_1") {
		t.Errorf("got %d bytes:\n%.600s", len(text), text)
	}
}
