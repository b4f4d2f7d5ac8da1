package broker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/policies"
)

// One caller filled the audit log with 912 kB in 1.3 s by calls of tools that do not exist
// (issue 23). Now an account has 500 such records a minute; further calls are counted by run and
// reason. Real calls, decisions of policies, and the calls of others have all their records.
func TestRecordsOfRefusedCallsAreBounded(t *testing.T) {
	f := newFixture(t, nil)
	run := func(id, principal string) *broker.RunCalls {
		return open(t, f.Broker, broker.Run{ID: id, Caller: caller.Caller{Principal: principal, Kind: caller.Local,
			Session: "ses_" + id}}, f.snapshot, nil)
	}
	const runs, each = 4, 500
	for n := range runs {
		flood := run(fmt.Sprintf("run_%d", n), "ann")
		for i := range each {
			unknown := broker.Call{ServerID: "files", Name: fmt.Sprintf("no_such_tool_%d", i)}
			if i%2 == 1 {
				unknown = call("read_file", fmt.Sprintf(`{"path":%d}`, i))
			}
			flood.Call(t.Context(), unknown)
		}
		checkAnswer(t, flood.Call(t.Context(), call("delete_file", `{}`)), "ApprovalDenied", "no person")
		if answer := flood.Call(t.Context(), call("read_file", `{"path":"/srv"}`)); !answer.OK {
			t.Errorf("a real call in the flood: %+v", answer.Error)
		}
		flood.Close()
	}
	other := run("run_bob", "bob")
	other.Call(t.Context(), call("no_such_tool", `{}`))
	other.Close()
	single, counted, real, denied, bobs := 0, 0, 0, 0, 0
	for _, r := range f.records(t) {
		switch {
		case r.Principal == "bob":
			bobs++
		case r.Kind == audit.KindOutcome && r.Calls > 0:
			if r.RunID == "" || r.ErrorType == "" || r.Outcome != audit.OutcomeRefused || r.CallID == "" {
				t.Errorf("got %+v, want a refusal of a run with its reason", r)
			}
			counted += r.Calls
		case r.Kind == audit.KindOutcome && r.ErrorType == "ApprovalDenied":
			denied++
		case r.Kind == audit.KindOutcome && r.Outcome == audit.OutcomeOK:
			real++
		case r.Kind == audit.KindOutcome:
			single++
		}
	}
	if single+counted != runs*each || single < 500 || single > runs*each-500 {
		t.Errorf("got %d records of single calls and %d counted calls, want %d together", single, counted, runs*each)
	}
	if denied != runs || real != runs || bobs != 1 {
		t.Errorf("got %d denials, %d real calls, %d records of another caller, want %d, %d, 1", denied, real, bobs,
			runs, runs)
	}
	limited, cancel := context.WithCancel(t.Context())
	cancel()
	flood := run("run_5", "ann")
	for n := 0; f.AwaitTurn(limited, caller.Caller{Principal: "ann", Kind: caller.Local}) == nil; n++ {
		if n == runs*each {
			t.Fatal("a call without code is not delayed after a flood")
		}
		flood.Call(t.Context(), call("no_such_tool", `{}`))
	}
	flood.Close()
	if err := f.AwaitTurn(limited, caller.Caller{Principal: "bob", Kind: caller.Local}); err != nil {
		t.Errorf("another account is delayed: %v", err)
	}
}

// One token filled the audit log by calls that the policies deny (issue 23). Each of these calls has a record, and they
// count for the rate of refused calls: beyond it, their answers wait for their turn, or for the end of the run. A call
// that is permitted does not wait.
func TestDeniedCallsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		session := f.open()
		defer session.Close()
		ann := caller.Caller{Principal: "ann", Kind: caller.Local}
		limit := quota.For(quota.Refusals)
		for range limit.Burst - 1 {
			f.admission.CountRefusal(ann.Account())
		}
		checkAnswer(t, session.Call(t.Context(), call("delete_file", `{}`)), "ApprovalDenied", "no person")
		const more = 64
		run, end := context.WithCancel(t.Context())
		answered := make(chan broker.Answer, more)
		for range more {
			go func() { answered <- session.Call(run, call("delete_file", `{}`)) }()
		}
		synctest.Wait()
		if got := len(answered); got != 0 {
			t.Errorf("%d of %d denied calls beyond the rate are answered at once", got, more)
		}
		if answer := session.Call(t.Context(), call("read_file", `{"path":"/srv"}`)); !answer.OK {
			t.Errorf("a permitted call: %+v", answer.Error)
		}
		time.Sleep(time.Second) // of the bubble
		synctest.Wait()
		if got := len(answered); got != int(limit.Rate) {
			t.Errorf("%d denied calls are answered in a second, want %v", got, limit.Rate)
		}
		end()
		for range more {
			<-answered
		}
		denied := 0
		for _, r := range f.records(t) {
			if r.Kind == audit.KindOutcome && r.Outcome == audit.OutcomeRefused && r.Decision != "" && r.Calls == 0 {
				denied++
			}
		}
		if denied != more+1 {
			t.Errorf("got %d records of denied calls, want %d", denied, more+1)
		}
	})
}

// Names of rule files may contain paths, which are not sent to the sandbox.
func TestRefusalsDoNotTellWhereRulesAre(t *testing.T) {
	tests := []struct{ name, rules, want string }{
		{"a rule with a name", `@id("team.f") @reason("not here") forbid (principal, action, resource);`,
			"policy team.f (team.cedar:1) forbids it: not here"},
		{"a rule without one", `forbid (principal, action, resource);`,
			"policy team.cedar:1 forbids it"},
		{"a question that nobody answers", `@approve("owner") permit (principal, action, resource);`,
			"approval (team.cedar:1)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, func(o *options) {
				engine, err := policies.Load(policies.File{Name: "/srv/airlock/rules/team.cedar",
					Source: []byte(test.rules)})
				if err != nil {
					t.Fatal(err)
				}
				o.Policies, o.Approver = engine, approver{approval.Verdict{Answer: approval.Unreachable},
					func(approval.Question) {}}
			})
			answer := f.open().Call(t.Context(), call("read_file", `{"path":"x"}`))
			if answer.OK || !strings.Contains(answer.Error.Message, test.want) ||
				strings.Contains(answer.Error.Message, "/srv") {
				t.Errorf("got %+v, want %q and no path", answer.Error, test.want)
			}
		})
	}
}

func TestNoPolicyDenies(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Policies = nil })
	checkAnswer(t, f.open().Call(t.Context(), call("read_file", `{"path":"x"}`)), "PolicyDenied", "no policy is loaded")
}
