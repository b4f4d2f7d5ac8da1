package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	servers "github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
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

func TestApproval(t *testing.T) {
	tests := []struct {
		name      string
		verdict   approval.Verdict
		wantType  string
		wantState approval.State
		acted     bool
	}{
		{"a person agrees", approval.Verdict{Answer: approval.Yes, By: "ann, test"}, "", approval.Approved, true},
		{"a person refuses", approval.Verdict{Answer: approval.No}, "ApprovalDenied", approval.Denied, false},
		{"nobody answers in time", approval.Verdict{Answer: approval.Expired}, "ApprovalTimeout", approval.Pending,
			false},
		{"there is nobody", approval.Verdict{Answer: approval.Unreachable}, "ApprovalDenied", approval.Denied, false},
		{"the zero verdict", approval.Verdict{}, "ApprovalDenied", approval.Denied, false},
		{"an answer that does not exist", approval.Verdict{Answer: 99}, "ApprovalDenied", approval.Denied, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var asked approval.Question
			f := newFixture(t, func(o *options) {
				o.Approver = approver{test.verdict, func(q approval.Question) { asked = q }}
			})
			var paused, resumed int
			s := f.openWith(&broker.RunOptions{OnWait: func(waiting bool) {
				if waiting {
					paused++
				} else {
					resumed++
				}
			}})
			answer := s.Call(t.Context(), call("delete_file", `{"path":"/srv/a"}`))
			checkAnswer(t, answer, test.wantType, "")
			if state := s.Close().ApprovalState; state != string(test.wantState) {
				t.Errorf("state: got %s, want %s", state, test.wantState)
			}
			if acted := len(f.upstream.calls) > 0; acted != test.acted {
				t.Errorf("the server was called: got %v, want %v", acted, test.acted)
			}
			if all := f.records(t); !slices.ContainsFunc(
				all, func(r audit.Record) bool { return r.Kind != audit.KindApproval && string(r.Arguments) != "" }) {
				t.Errorf("no record has the shape of the arguments: %+v", all)
			}
			if paused != 1 || resumed != 1 {
				t.Errorf("the clock: got %d pauses, %d resumes, want one each", paused, resumed)
			}
			if string(asked.Arguments) != `{"path":"/srv/a"}` || asked.DefinitionDigest == "" ||
				asked.PolicyVersion == "" || asked.CodeHash != "sha256:c" || asked.Principal != "ann" {
				t.Errorf("the question is not bound to what it must be: %+v", asked)
			}
		})
	}
}

func TestApprovalDoesNotOutliveItsPolicy(t *testing.T) {
	var f *fixture
	f = newFixture(t, func(o *options) {
		o.Approver = approver{approval.Verdict{Answer: approval.Yes}, func(approval.Question) {
			stricter, err := policies.Load(policies.File{Name: "new.cedar",
				Source: []byte(`forbid (principal, action, resource);`)})
			if err != nil {
				t.Error(err)
			}
			if err := f.admission.SetRules(context.Background(), admission.Rules{Policies: stricter}, "ann",
				"other policies are in force"); err != nil {
				t.Error(err)
			}
		}}
	})
	checkAnswer(t, f.open().Call(t.Context(), call("delete_file", `{}`)), "ApprovalDenied", "rules changed")
	if len(f.upstream.calls) != 0 {
		t.Error("the server was called")
	}
}

// Suspicious properties of a tool are shown to the person who is asked, and "*" does not allow such
// a tool.
func TestSuspicionIsPutToThePerson(t *testing.T) {
	var asked approval.Question
	f := newFixture(t, func(o *options) {
		o.Operator = policies.Operator{"files": {TrustAnnotations: true, Allow: []string{policies.AllTools}}}
		o.Approver = approver{approval.Verdict{Answer: approval.Yes}, func(q approval.Question) { asked = q }}
	})
	checkAnswer(t, f.open().Call(t.Context(), call("sly_reader", `{}`)), "", "done")
	if len(asked.Flags) != 1 || asked.Flags[0] != "description: the text gives instructions to the model" {
		t.Errorf("got a question with flags %q, want the instruction in the description", asked.Flags)
	}
}
