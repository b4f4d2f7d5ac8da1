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
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
)

// office decides about agents as set by a test, and records the outcomes of their acts.
type office struct {
	ruling broker.AgentRuling
	err    error
	late   *broker.Error // what Approve returns

	mu    sync.Mutex
	acts  []broker.AgentAct
	ended []string
}

func (o *office) Decide(_ context.Context, act broker.AgentAct) (broker.AgentRuling, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acts = append(o.acts, act)
	r := o.ruling
	if r.Refused == nil && o.err == nil {
		r.Grant = officeGrant{o}
	}
	return r, o.err
}

type officeGrant struct{ *office }

func (g officeGrant) Approve(_ context.Context, by string) (*broker.Error, error) {
	g.note("approved by " + by)
	return g.late, nil
}

func (g officeGrant) End(_ context.Context, done bool, _ time.Duration) error {
	if done {
		g.note("done")
	} else {
		g.note("not done")
	}
	return nil
}

func (o *office) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = append(o.ended, what)
}

var agentCaller = caller.Caller{Principal: "agent_1", Kind: caller.Agent, Session: "s1"}

// Each call of an agent is decided once, and its outcome is reported: only a call that was sent
// counts as done.
func TestAgentsCallsAreDecidedAbout(t *testing.T) {
	refused := &broker.Error{Type: "LoopDetected", Message: "QWED-AGENT-LOOP-003: the same", Source: "broker"}
	yes := approval.Verdict{Answer: approval.Yes, By: "ann, console"}
	for name, c := range map[string]struct {
		ruling  broker.AgentRuling
		err     error
		late    *broker.Error
		verdict approval.Verdict
		tool    string
		change  func(*broker.Options)
		want    string // type of the error
		ended   []string
	}{
		"permitted":                  {tool: "read_file", ended: []string{"done"}},
		"refused":                    {ruling: broker.AgentRuling{Refused: refused}, tool: "read_file", want: "LoopDetected"},
		"nothing could be decided":   {err: errors.New("the disk is full"), tool: "read_file", want: "SandboxError"},
		"a person agrees":            {ruling: broker.AgentRuling{Approve: []string{"owner"}}, verdict: yes, tool: "read_file", ended: []string{"approved by ann, console", "done"}},
		"agrees too late":            {ruling: broker.AgentRuling{Approve: []string{"owner"}}, verdict: yes, late: refused, tool: "read_file", want: "LoopDetected", ended: []string{"approved by ann, console", "not done"}},
		"a person refuses":           {ruling: broker.AgentRuling{Approve: []string{"owner"}}, tool: "read_file", want: "ApprovalDenied", ended: []string{"not done"}},
		"policies ask as well":       {verdict: yes, tool: "write_file", ended: []string{"approved by ann, console", "done"}},
		"policies refuse":            {tool: "read_file", change: func(o *broker.Options) { o.Policies = nil }, want: "PolicyDenied", ended: []string{"not done"}},
		"the definition changed":     {tool: "read_file", change: func(o *broker.Options) { o.Definitions = &definitions{now: changedTools(t, "read_file", redescribed)} }, want: "PolicyDenied", ended: []string{"not done"}},
		"nothing is known of agents": {tool: "read_file", change: func(o *broker.Options) { o.Agents = nil }, want: "SandboxError"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &office{ruling: c.ruling, err: c.err, late: c.late}
			f := newFixture(t, func(opts *broker.Options) {
				opts.Agents, opts.Approver = o, approver{verdict: c.verdict}
				if c.change != nil {
					c.change(opts)
				}
			})
			calls := open(t, f.Broker, broker.Run{ID: "run_1", Caller: agentCaller}, f.snapshot, nil)
			answer := calls.Call(t.Context(), broker.Call{ServerID: "files", Name: c.tool, Arguments: json.RawMessage(`{"path": "a"}`)})
			got := ""
			if answer.Error != nil {
				got = answer.Error.Type
			}
			if got != c.want || !slices.Equal(o.ended, c.ended) {
				t.Errorf("got %q and %q (%+v), want %q and %q", got, o.ended, answer.Error, c.want, c.ended)
			}
			if went := len(f.upstream.calls) > 0; went != (c.want == "") {
				t.Errorf("the server was called: %t", went)
			}
			if len(o.acts) > 1 {
				t.Errorf("decided %d times", len(o.acts))
			}
		})
	}
}

// A call that fails before the decision is not an act: the tool was not found, or the arguments are
// invalid.
func TestOnlyWhatCouldBeCalledIsDecidedAbout(t *testing.T) {
	o := &office{}
	f := newFixture(t, func(opts *broker.Options) { opts.Agents = o })
	calls := open(t, f.Broker, broker.Run{ID: "run_1", Caller: agentCaller}, f.snapshot, &broker.RunOptions{Admitted: &broker.Admission{Approval: approval.Approved}})
	calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "none"})
	calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "read_file"})
	if len(o.acts) != 0 {
		t.Errorf("%+v", o.acts)
	}
	calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "read_file", Arguments: json.RawMessage(`{"path": "a"}`)})
	if len(o.acts) != 1 || !o.acts[0].Call.Nested || o.acts[0].Call.Risk != policies.RiskLow || o.acts[0].Call.Asks {
		t.Errorf("%+v", o.acts)
	}
	if state := calls.Close().ApprovalState; state != "APPROVED" {
		t.Errorf("the approval of the run is lost: %s", state)
	}
	// Callers that are not agents are not decided here.
	f.open().Call(t.Context(), broker.Call{ServerID: "files", Name: "read_file", Arguments: json.RawMessage(`{"path": "a"}`)})
	if len(o.acts) != 1 {
		t.Errorf("%+v", o.acts)
	}
}

// A run of an agent is decided before it starts, and a person who is asked sees its code.
func TestAgentsRunsAreAdmitted(t *testing.T) {
	var shown approval.Question
	o := &office{ruling: broker.AgentRuling{Approve: []string{"owner"}, Risk: policies.RiskLow}}
	f := newFixture(t, func(opts *broker.Options) {
		opts.Agents = o
		opts.Approver = approver{approval.Verdict{Answer: approval.Yes, By: "ann"}, func(q approval.Question) { shown = q }}
	})
	run := broker.Run{ID: "run_1", Caller: agentCaller, Language: "python", Code: "result = 1", CodeHash: "sha256:c"}
	admission, refused := f.Admit(t.Context(), run, time.Minute)
	if refused != nil || admission.Approval != approval.Approved || o.acts[0].Longest != time.Minute {
		t.Fatalf("%+v, %+v", admission, refused)
	}
	if shown.Code != "result = 1" || shown.ToolName != "run_code" || shown.CallerKind != "agent" || shown.Risk != "LOW" {
		t.Errorf("%+v", shown)
	}
	admission.End(t.Context(), true, time.Second)
	if want := []string{"approved by ann", "done"}; !slices.Equal(o.ended, want) {
		t.Errorf("%q, want %q", o.ended, want)
	}
	kinds := []audit.Kind{}
	for _, r := range f.records(t) {
		kinds = append(kinds, r.Kind)
	}
	if !slices.Contains(kinds, audit.KindApproval) {
		t.Errorf("no record of the question: %q", kinds)
	}

	o.ruling.Refused = &broker.Error{Type: "BudgetExceeded", Message: "spent"}
	if _, refused := f.Admit(t.Context(), run, 0); refused == nil || refused.Type != "BudgetExceeded" {
		t.Errorf("%+v", refused)
	}
	o.ruling.Refused, o.err = nil, errors.New("the disk is full")
	if _, refused := f.Admit(t.Context(), run, 0); refused == nil || strings.Contains(refused.Message, "disk") {
		t.Errorf("%+v", refused)
	}
	run.Caller.Kind = caller.Local
	if admission, refused := f.Admit(t.Context(), run, 0); refused != nil || admission.Approval != approval.NotRequired {
		t.Errorf("%+v, %+v", admission, refused)
	}
}

// The error of a run that nobody approved describes how to approve it.
func TestAnUnapprovedRunSaysSo(t *testing.T) {
	o := &office{ruling: broker.AgentRuling{Approve: []string{"owner"}}}
	f := newFixture(t, func(opts *broker.Options) { opts.Agents = o })
	admission, refused := f.Admit(t.Context(), broker.Run{ID: "run_1", Caller: agentCaller, Code: "x"}, 0)
	if refused == nil || refused.Type != "ApprovalDenied" || !strings.HasPrefix(refused.Message, "the run needs a person's approval") || strings.Contains(refused.Message, "servers..") {
		t.Errorf("%+v", refused)
	}
	admission.End(t.Context(), false, 0)
	if admission.Approval != approval.Denied || !slices.Equal(o.ended, []string{"not done"}) {
		t.Errorf("%+v, %q", admission, o.ended)
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

// A run whose caller may no longer act makes no further call, even one that was permitted before:
// the credential is checked between the decision and the record of the intent (issue 23).
func TestAuthorityIsCheckedAtTheIntent(t *testing.T) {
	for name, test := range map[string]struct {
		why            error
		kind, contains string
	}{
		"revoked":           {fmt.Errorf("%w: revoked", caller.ErrEnded), "PolicyDenied", "the caller's token was revoked"},
		"suspended":         {caller.ErrInactive, "PolicyDenied", "QWED-AGENT-POLICY-001: the agent was suspended"},
		"it is not known":   {errors.New("the disk is full"), "SandboxError", "could not be looked up"},
		"another authority": {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(opts *broker.Options) {
				if test.why != nil {
					opts.Authority = &ended{why: test.why, after: 1}
				} else {
					opts.Authority = nil // no Authority knows the credential
				}
			})
			who := caller.Caller{Principal: "bob", Kind: caller.User, Session: "ses_1", Credentials: []caller.Credential{{ID: "tok_1"}}}
			calls := open(t, f.Broker, broker.Run{ID: "run_1", Caller: who}, f.snapshot, nil)
			read := broker.Call{ServerID: "files", Name: "read_file", Arguments: json.RawMessage(`{"path": "a"}`)}
			if test.why == nil {
				if answer := calls.Call(t.Context(), read); answer.Error == nil || answer.Error.Type != "PolicyDenied" || len(f.upstream.calls) > 0 {
					t.Errorf("a credential that nobody knows: %+v", answer)
				}
				return
			}
			if answer := calls.Call(t.Context(), read); answer.Error != nil {
				t.Fatalf("while the credential is in force: %+v", answer.Error)
			}
			answer := calls.Call(t.Context(), read)
			if answer.Error == nil || answer.Error.Type != test.kind || !strings.Contains(answer.Error.Message, test.contains) || strings.Contains(answer.Error.Message, "disk") {
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
