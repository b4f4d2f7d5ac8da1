package broker_test

import (
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/policies"
)

// A change by the operator applies to the next call of a running run, except for the budgets, which
// are fixed at the start of the run.
func TestRulesChangeWhileARunGoesOn(t *testing.T) {
	var began *policies.Engine
	var operator policies.Operator
	f := newFixture(t, func(o *options) { began, operator = o.Policies, o.Operator })
	run := f.open()
	checkAnswer(t, run.Call(t.Context(), distinct(0)), "", "")
	change := func(what string, rules admission.Rules) {
		t.Helper()
		rules.Policies = began
		if err := f.admission.SetRules(t.Context(), rules, "ann", what); err != nil {
			t.Fatal(err)
		}
		records := f.records(t)
		if last := records[len(records)-1]; last.Kind != audit.KindOperator || last.Detail != what ||
			last.Principal != "ann" {
			t.Errorf("got record %+v, want one of the operator that says %q", last, what)
		}
	}
	change("a tool is denied",
		admission.Rules{Operator: policies.Operator{"files": {TrustAnnotations: true, Deny: []string{"read_file"}}}})
	checkAnswer(t, run.Call(t.Context(), distinct(1)), "PolicyDenied", "")
	change("a rate is set", admission.Rules{Operator: operator, Limits: admission.Limits{
		Servers: map[string]admission.ServerLimits{"files": {Rate: admission.Rate{Calls: 2, Per: time.Hour}}},
	}})
	checkAnswer(t, run.Call(t.Context(), distinct(2)), "", "")
	checkAnswer(t, run.Call(t.Context(), distinct(3)), "", "")
	checkAnswer(t, run.Call(t.Context(), distinct(4)), "RateLimit", "")
	change("a budget is smaller than what the run has used",
		admission.Rules{Operator: operator, Limits: admission.Limits{Calls: 1}})
	checkAnswer(t, run.Call(t.Context(), distinct(5)), "", "")
	later := f.open()
	checkAnswer(t, later.Call(t.Context(), distinct(6)), "", "")
	checkAnswer(t, later.Call(t.Context(), distinct(7)), "BudgetExceeded", "")
}

func TestRulesThatMakeNoSenseAreRefused(t *testing.T) {
	f := newFixture(t, nil)
	if err := f.admission.SetRules(t.Context(), admission.Rules{Limits: admission.Limits{Calls: -1}}, "ann",
		"nonsense"); err == nil {
		t.Error("got nil, want an error")
	}
	checkAnswer(t, f.open().Call(t.Context(), distinct(0)), "", "")
}

// Issue 27: the call of a server that was removed ends with UnknownTool, not with what the rules decide about an
// unknown risk.
func TestACallOfARemovedServer(t *testing.T) {
	f := newFixture(t, nil)
	run := f.open()
	checkAnswer(t, run.Call(t.Context(), distinct(0)), "", "")
	if err := f.admission.SetRules(t.Context(), admission.Rules{Policies: f.admission.Rules().Policies,
		Operator: policies.Operator{"mail": {}}}, "ann", "files is removed"); err != nil {
		t.Fatal(err)
	}
	checkAnswer(t, run.Call(t.Context(), distinct(1)), "UnknownTool", "")
}
