package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// office has a registered agent, whose calls cost a dollar each.
type office struct {
	*agents.Service
	database *database.DB
	agent    agents.Agent
}

// agent registers an agent that may use the tools of the server "files", and lets it act.
func (f *fixture) agent(t *testing.T, kind agents.Type, blocked ...string) *office {
	t.Helper()
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), agents.Schema, agents.SchemaInherited,
		agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	o := &office{Service: agents.New(agents.Options{Database: db, Log: f.log}), database: db}
	o.agent, _, err = o.Register(t.Context(), agents.Registration{Name: "a", Type: kind, PrincipalID: "ann",
		Permissions: agents.Permissions{AllowedTools: []string{"files/*"}, BlockedTools: blocked}}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	end, err := f.admission.OpenAgents(admission.AgentOptions{Agents: o.Service, Database: db,
		Prices: admission.Prices{Default: budget.USD}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return o
}

func (o *office) caller() caller.Caller {
	return caller.Caller{Principal: o.agent.ID, Kind: caller.Agent, Session: "s1"}
}

// spent returns what the agent was debited and how many requests it made.
func (o *office) spent(t *testing.T) string {
	t.Helper()
	s, err := o.Budget(t.Context(), o.agent.ID)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s USD, %d requests", s.Day.Cost, s.Day.Requests)
}

// Each call of an agent is decided once. Only a call that was sent is debited.
func TestAgentsCallsAreDecidedAbout(t *testing.T) {
	yes := approval.Verdict{Answer: approval.Yes, By: "ann, console"}
	const paid, free = "1 USD, 1 requests", "0 USD, 1 requests"
	for name, c := range map[string]struct {
		kind      agents.Type
		blocked   []string
		verdict   approval.Verdict
		meanwhile func(*office) // while the person is asked
		before    func(*office)
		tool      string
		change    func(*options)
		want      string // type of the error
		spent     string
	}{
		"permitted": {kind: agents.Supervised, tool: "read_file", spent: paid},
		"refused": {kind: agents.Supervised, blocked: []string{"files/*"}, tool: "read_file", want: "PolicyDenied",
			spent: free},
		"not decided": {kind: agents.Supervised, tool: "read_file", want: "SandboxError",
			before: func(o *office) { o.database.Close() }},
		"a person agrees": {kind: agents.Untrusted, verdict: yes, tool: "read_file", spent: paid},
		"agrees too late": {kind: agents.Untrusted, verdict: yes, tool: "read_file", want: "PolicyDenied", spent: free,
			meanwhile: func(o *office) { _ = o.SetStatus(context.Background(), o.agent.ID, agents.Suspended, "ann") }},
		"a person refuses": {kind: agents.Untrusted, tool: "read_file", want: "ApprovalDenied", spent: free},
		"policies ask":     {kind: agents.Trusted, verdict: yes, tool: "write_file", spent: paid},
		"policies refuse": {kind: agents.Trusted, tool: "read_file", want: "PolicyDenied", spent: free,
			change: func(o *options) { o.Policies = nil }},
		"the definition changed": {kind: agents.Supervised, tool: "read_file", want: "PolicyDenied", spent: free,
			change: func(o *options) {
				o.Definitions = &definitions{now: changedTools(t, "read_file", redescribed)}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			var o *office
			f := newFixture(t, func(opts *options) {
				opts.Approver = approver{c.verdict, func(approval.Question) {
					if c.meanwhile != nil {
						c.meanwhile(o)
					}
				}}
				if c.change != nil {
					c.change(opts)
				}
			})
			o = f.agent(t, c.kind, c.blocked...)
			if c.before != nil {
				c.before(o)
			}
			calls := open(t, f.Broker, broker.Run{ID: "run_1", Caller: o.caller()}, f.snapshot, nil)
			answer := calls.Call(t.Context(), broker.Call{ServerID: "files", Name: c.tool,
				Arguments: json.RawMessage(`{"path": "a"}`)})
			got := ""
			if answer.Error != nil {
				got = answer.Error.Type
			}
			if got != c.want {
				t.Errorf("got %q (%+v), want %q", got, answer.Error, c.want)
			}
			if c.spent != "" && o.spent(t) != c.spent {
				t.Errorf("got %s, want %s", o.spent(t), c.spent)
			}
			if went := len(f.upstream.calls) > 0; went != (c.want == "") {
				t.Errorf("the server was called: %t", went)
			}
		})
	}
}

// Without the registered agents, agents may do nothing.
func TestWithoutAgentsNoneActs(t *testing.T) {
	f := newFixture(t, nil)
	calls := open(t, f.Broker, broker.Run{ID: "run_1", Caller: caller.Caller{Principal: "agent_1", Kind: caller.Agent,
		Session: "s1"}}, f.snapshot, nil)
	checkAnswer(t, calls.Call(t.Context(), distinct(0)), "SandboxError", "")
}

// A call that fails before the decision is not an act: the tool was not found, or the arguments are
// invalid. The calls of a run take no steps.
func TestOnlyWhatCouldBeCalledIsDecidedAbout(t *testing.T) {
	f := newFixture(t, nil)
	o := f.agent(t, agents.Supervised)
	calls := open(t, f.Broker, broker.Run{ID: "run_1", Caller: o.caller()}, f.snapshot,
		&broker.RunOptions{Admitted: &broker.Admission{Approval: approval.Approved}})
	calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "none"})
	calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "read_file"})
	if got := o.spent(t); got != "0 USD, 0 requests" {
		t.Error(got)
	}
	const more = 60 // than a conversation has steps
	for i := range more {
		checkAnswer(t, calls.Call(t.Context(), distinct(i)), "", "")
	}
	if state := calls.Close().ApprovalState; state != "APPROVED" {
		t.Errorf("the approval of the run is lost: %s", state)
	}
	// Callers that are not agents are not debited.
	checkAnswer(t, f.open().Call(t.Context(), distinct(0)), "", "")
	if got, want := o.spent(t), fmt.Sprintf("%d USD, %d requests", more, more); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A run of an agent is decided before it starts, and a person who is asked sees its code.
func TestAgentsRunsAreAdmitted(t *testing.T) {
	var shown approval.Question
	f := newFixture(t, func(opts *options) {
		opts.Approver = approver{approval.Verdict{Answer: approval.Yes, By: "ann"},
			func(q approval.Question) { shown = q }}
	})
	o := f.agent(t, agents.Untrusted)
	run := broker.Run{ID: "run_1", Caller: o.caller(), Language: "python", Code: "result = 1", CodeHash: "sha256:c"}
	admitted, refused := f.Admit(t.Context(), run, time.Minute)
	if refused != nil || admitted.Approval != approval.Approved {
		t.Fatalf("%+v, %+v", admitted, refused)
	}
	if shown.Code != "result = 1" || shown.ToolName != "run_code" || shown.CallerKind != "agent" ||
		shown.Risk != "LOW" {
		t.Errorf("%+v", shown)
	}
	admitted.End(t.Context(), true, time.Second)
	if got := o.spent(t); got != "1 USD, 1 requests" {
		t.Error(got)
	}
	kinds := []audit.Kind{}
	for _, r := range f.records(t) {
		kinds = append(kinds, r.Kind)
	}
	if !slices.Contains(kinds, audit.KindApproval) {
		t.Errorf("no record of the question: %q", kinds)
	}
	nothing := agents.Change{Budget: &budget.Limits{DayCost: new(budget.Amount)}}
	if _, err := o.Change(t.Context(), o.agent.ID, nothing, "ann",
		func(_, _ agents.Agent) error { return nil }); err != nil {
		t.Fatal(err)
	}
	run.Code = "result = 2"
	if _, refused := f.Admit(t.Context(), run, 0); refused == nil || refused.Type != "BudgetExceeded" {
		t.Errorf("%+v", refused)
	}
	o.database.Close()
	if _, refused := f.Admit(t.Context(), run, 0); refused == nil || refused.Type != "SandboxError" ||
		strings.Contains(refused.Message, "database") {
		t.Errorf("%+v", refused)
	}
	run.Caller.Kind = caller.Local
	if admitted, refused := f.Admit(t.Context(), run, 0); refused != nil ||
		admitted.Approval != approval.NotRequired {
		t.Errorf("%+v, %+v", admitted, refused)
	}
}

// The error of a run that nobody approved describes how to approve it.
func TestAnUnapprovedRunSaysSo(t *testing.T) {
	f := newFixture(t, nil)
	o := f.agent(t, agents.Untrusted)
	admitted, refused := f.Admit(t.Context(), broker.Run{ID: "run_1", Caller: o.caller(), Code: "x"}, 0)
	if refused == nil || refused.Type != "ApprovalDenied" ||
		!strings.HasPrefix(refused.Message, "the run needs a person's approval") ||
		strings.Contains(refused.Message, "servers..") {
		t.Errorf("%+v", refused)
	}
	admitted.End(t.Context(), false, 0)
	if got := o.spent(t); admitted.Approval != approval.Denied || got != "0 USD, 1 requests" {
		t.Errorf("%+v, %s", admitted, got)
	}
}

// ended refuses each caller with a credential, and counts the checks.
type ended struct {
	why   error
	after int // number of checks that succeed first

	mu    sync.Mutex
	asked int
}

func (e *ended) Check(_ context.Context, who caller.Caller) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked++; len(who.Credentials) == 0 || e.asked <= e.after {
		return nil
	}
	return e.why
}

func (*ended) MayAct() error { return nil }

// replaced is the authority of a node that was stopped while an intent was recorded, and replaced.
type replaced struct{ ended }

func (*replaced) MayAct() error { return errors.New("another process has replaced this node") }

// Issue 28: a node that was replaced while it recorded an intent does not make the call.
func TestAReplacedNodeMakesNoCall(t *testing.T) {
	f := newFixture(t, func(opts *options) { opts.Authority = &replaced{} })
	checkAnswer(t, f.open().Call(t.Context(), distinct(0)), "SandboxError", "so the call was not made")
	kinds := map[audit.Kind]int{}
	for _, r := range f.records(t) {
		kinds[r.Kind]++
	}
	if len(f.upstream.calls) != 0 || kinds[audit.KindIntent] != 1 || kinds[audit.KindOutcome] != 1 {
		t.Errorf("got %d calls, and the records %v", len(f.upstream.calls), kinds)
	}
}

// A run whose caller may no longer act makes no further call, even one that was permitted before:
// the credential is checked between the decision and the record of the intent (issue 23).
func TestAuthorityIsCheckedAtTheIntent(t *testing.T) {
	for name, test := range map[string]struct {
		why            error
		kind, contains string
	}{
		"revoked": {fmt.Errorf("%w: revoked", caller.ErrEnded), "PolicyDenied",
			"the caller's token was revoked"},
		"suspended":         {caller.ErrInactive, "PolicyDenied", "QWED-AGENT-POLICY-001: the agent was suspended"},
		"it is not known":   {errors.New("the disk is full"), "SandboxError", "could not be looked up"},
		"another authority": {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(opts *options) {
				if test.why != nil {
					opts.Authority = &ended{why: test.why, after: 1}
				} else {
					opts.Authority = nil // no Authority knows the credential
				}
			})
			who := caller.Caller{Principal: "bob", Kind: caller.User, Session: "ses_1",
				Credentials: []caller.Credential{{ID: "tok_1"}}}
			calls := open(t, f.Broker, broker.Run{ID: "run_1", Caller: who}, f.snapshot, nil)
			read := broker.Call{ServerID: "files", Name: "read_file", Arguments: json.RawMessage(`{"path": "a"}`)}
			if test.why == nil {
				if answer := calls.Call(t.Context(), read); answer.Error == nil ||
					answer.Error.Type != "PolicyDenied" || len(f.upstream.calls) > 0 {
					t.Errorf("a credential that nobody knows: %+v", answer)
				}
				return
			}
			if answer := calls.Call(t.Context(), read); answer.Error != nil {
				t.Fatalf("while the credential is in force: %+v", answer.Error)
			}
			answer := calls.Call(t.Context(), read)
			if answer.Error == nil || answer.Error.Type != test.kind ||
				!strings.Contains(answer.Error.Message, test.contains) ||
				strings.Contains(answer.Error.Message, "disk") {
				t.Errorf("got %+v, want %s: %s", answer.Error, test.kind, test.contains)
			}
			intents := 0
			for _, r := range f.records(t) {
				if r.Kind == audit.KindIntent {
					intents++
				}
			}
			if len(f.upstream.calls) != 1 || intents != 1 {
				t.Errorf("got %d calls and %d intents, want the one from before", len(f.upstream.calls), intents)
			}
		})
	}
}

// Issues 25 and 27: the totals of a run tell calls that were made from calls that were refused.
func TestDeniedCallsAreCounted(t *testing.T) {
	f := newFixture(t, nil)
	run := f.open()
	checkAnswer(t, run.Call(t.Context(), distinct(0)), "", "")
	checkAnswer(t, run.Call(t.Context(), call("delete_file", `{}`)), "ApprovalDenied", "")
	checkAnswer(t, run.Call(t.Context(), call("changed", `{}`)), "PolicyDenied", "")
	checkAnswer(t, run.Call(t.Context(), call("none", `{}`)), "UnknownTool", "")
	if s := run.Close(); s.Made != 1 || s.Denied != 3 {
		t.Errorf("got %d calls made and %d denied, want 1 and 3", s.Made, s.Denied)
	}
}
