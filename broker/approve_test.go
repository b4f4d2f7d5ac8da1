package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/broker"
	servers "github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// counting gives all questions the same answer and counts them.
type counting struct {
	mu      sync.Mutex
	verdict approval.Verdict
	asked   []approval.Question
}

func (c *counting) Ask(_ context.Context, q approval.Question) (approval.Verdict, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, q)
	return c.verdict, nil
}

// A person who refuses a call is not asked about it again, whether the run repeats it concurrently
// or in sequence, and however it encodes the arguments.
func TestARefusedQuestionIsNotAskedAgain(t *testing.T) {
	spellings := []string{`{"path":"a","force":true}`, `{"path":"a","force":true,"keep":1}`,
		`{"keep":1.0,"force":true,"path":"a"}`, `{"force":true,"path":"a"}`, ` { "path" : "a" , "force" : true } `,
		`{"p\u0061th":"\u0061","force":true}`}
	tests := []struct {
		name      string
		verdict   approval.Verdict
		asks      int // for 300 calls
		wantFirst string
		wantType  string
	}{
		{"refused", approval.Verdict{Answer: approval.No, By: "ann"}, 1, "ApprovalDenied", "ApprovalDenied"},
		{"an answer that is none", approval.Verdict{Answer: 99}, 1, "ApprovalDenied", "ApprovalDenied"},
		{"closed without an answer", approval.Verdict{Answer: approval.Dismissed}, 1, "ApprovalTimeout",
			"ApprovalTimeout"},
		{"approved", approval.Verdict{Answer: approval.Yes}, 300, "", ""},
		{"expired", approval.Verdict{Answer: approval.Expired}, 300, "ApprovalTimeout", "ApprovalTimeout"},
	}
	for _, test := range tests {
		for _, atOnce := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, at once %v", test.name, atOnce), func(t *testing.T) {
				people := &counting{verdict: test.verdict}
				f := newFixture(t, func(o *options) {
					o.Approver = people
					o.Limits = admission.Limits{Repeats: 1000}
				})
				s := f.open()
				first := s.Call(t.Context(), call("delete_file", spellings[0]))
				checkAnswer(t, first, test.wantFirst, "")
				var calls sync.WaitGroup
				one := func(i int) {
					answer := s.Call(t.Context(), call("delete_file", spellings[i%len(spellings)]))
					checkAnswer(t, answer, test.wantType, "")
				}
				for i := range 299 {
					if atOnce {
						calls.Go(func() { one(i) })
					} else {
						one(i)
					}
				}
				calls.Wait()
				if len(people.asked) != test.asks {
					t.Errorf("asked %d times, want %d", len(people.asked), test.asks)
				}
			})
		}
	}
}

// A question that differs from a refused one is asked.
func TestOtherQuestionsAreAsked(t *testing.T) {
	people := &counting{}
	f := newFixture(t, func(o *options) { o.Approver = people })
	first, second := f.open(), f.open()
	for _, c := range []struct {
		run  *broker.RunCalls
		call broker.Call
	}{
		{first, call("delete_file", `{"path":"a"}`)}, {first, call("delete_file", `{"path":"b"}`)},
		{first, call("delete_file", `{"path":"a ","x":null}`)},
		{first, call("write_file", `{"path":"a"}`)}, {second, call("delete_file", `{"path":"a"}`)},
	} {
		checkAnswer(t, c.run.Call(t.Context(), c.call), "ApprovalDenied", "")
	}
	if len(people.asked) != 5 {
		t.Errorf("asked %d times, want 5", len(people.asked))
	}
	ids := map[string]bool{}
	for _, q := range people.asked {
		ids[q.RunID+q.CallID] = true
	}
	if len(ids) != 5 {
		t.Errorf("got questions of %d calls, want each of its own", len(ids))
	}
}

// The line claimed by the client is shown to the person, and does not affect any decision.
func TestTheClaimedLineIsPutToThePerson(t *testing.T) {
	people := &counting{}
	f := newFixture(t, func(o *options) { o.Approver = people })
	c := call("delete_file", `{}`)
	c.Line = 7
	f.open().Call(t.Context(), c)
	if len(people.asked) != 1 || people.asked[0].ClaimedLine != 7 {
		t.Errorf("got %+v", people.asked)
	}
}

// Results and errors of a server both count as read from it.
func TestErrorsCountAsRead(t *testing.T) {
	problem := func(kind servers.ErrorType) error {
		return &servers.CallError{ServerID: "files", ToolName: "read_file", Type: kind,
			Message: "the balance of ann is 7"}
	}
	tests := []struct {
		name   string
		result string
		err    error
		read   bool
	}{
		{"a result", `{"content":[]}`, nil, true},
		{"a tool's own failure", `{"isError":true,"content":[{"type":"text","text":"the balance of ann is 7"}]}`, nil,
			true},
		{"a result that is none", `[]`, nil, true},
		{"a result that is too large", `{"content":[{"type":"text","text":"` + strings.Repeat("x", 4096) + `"}]}`, nil,
			true},
		{"a tool error of the protocol", "", problem(servers.ToolError), true},
		{"a server that hung up", "", problem(servers.TransientNetwork), true},
		{"a server that asks for patience", "", problem(servers.RateLimit), true},
		{"an invalid output", "", problem(servers.InvalidOutput), true},
		{"a timeout with the server's words", "", problem(servers.Timeout), true},
		{"any other error", "", errors.New("it hung up"), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, func(o *options) {
				o.Policies = mustLoad(t, `@id("all") permit (principal, action, resource);
					@id("leak") forbid (principal, action == Action::"files/write_file", resource) when { context.session.servers.contains("files") };`)
				o.Limits = admission.Limits{ResultBytes: 1024}
			})
			f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(test.result), test.err
			}
			s := f.open()
			s.Call(t.Context(), call("read_file", `{"path":"a"}`))
			answer := s.Call(t.Context(), call("write_file", `{}`))
			if refused := answer.Error != nil && answer.Error.Type == "PolicyDenied"; refused != test.read {
				t.Errorf("got %+v, want the server read: %v", answer.Error, test.read)
			}
		})
	}
}

// Facts are kept as long as their session exists. If the table is full, new sessions are refused,
// and the facts of old ones are kept.
func TestFactsAreNeverEvicted(t *testing.T) {
	f := newFixture(t, func(o *options) {
		o.Policies = mustLoad(t, `@id("all") permit (principal, action, resource);
			@id("leak") forbid (principal, action == Action::"files/write_file", resource) when { context.session.servers.contains("files") };`)
	})
	run := func(session string) broker.Run {
		return broker.Run{ID: "run_" + session, Caller: caller.Caller{Principal: "ann", Kind: caller.Local,
			Session: session}}
	}
	first, err := f.Open(run("s0"), f.snapshot, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, first.Call(t.Context(), call("read_file", `{"path":"a"}`)), "", "")
	first.Close()
	opened := 1
	for ; ; opened++ {
		s, err := f.Open(run(fmt.Sprintf("s%d", opened)), f.snapshot, nil)
		if errors.Is(err, broker.ErrSessions) {
			break
		}
		if err != nil || opened > 100_000 {
			t.Fatalf("after %d sessions: %v", opened, err)
		}
		s.Close()
	}
	again, err := f.Open(run("s0"), f.snapshot, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, again.Call(t.Context(), call("write_file", `{}`)), "PolicyDenied", "")
	f.EndSession("s0") // its run is still open, so its facts are kept
	checkAnswer(t, again.Call(t.Context(), call("write_file", `{}`)), "PolicyDenied", "")
	second, err := f.Open(run("s0"), f.snapshot, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, second.Call(t.Context(), call("write_file", `{}`)), "PolicyDenied", "")
	again.Close()
	second.Close()
	if _, err := f.Open(run("another"), f.snapshot, nil); err != nil {
		t.Errorf("after a session has ended: %v", err)
	}
}
