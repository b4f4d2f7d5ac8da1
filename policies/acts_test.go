package policies_test

import (
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/policies"
)

func agentRules(t *testing.T) *policies.Engine {
	t.Helper()
	engine, err := policies.Load(policies.Agents())
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// outcome is a decision as one word.
func outcome(d policies.Decision) string {
	switch {
	case !d.Allow:
		return "deny"
	case len(d.Approve) > 0:
		return "ask"
	}
	return "permit"
}

// the matrix of trust and risk.
func TestTrustOverRisk(t *testing.T) {
	rules := agentRules(t)
	for trust, want := range [4][4]string{
		{"ask", "deny", "deny", "deny"},
		{"permit", "ask", "deny", "deny"},
		{"permit", "permit", "ask", "deny"},
		{"permit", "permit", "permit", "permit"},
	} {
		for risk, want := range want {
			d := rules.DecideAct(policies.Act{AgentID: "a", Trust: trust, Active: true, Type: "x",
				Risk: policies.RiskLow + policies.Risk(risk), Category: policies.ActOther})
			if got := outcome(d); got != want {
				t.Errorf("trust %d, risk %s: %s, want %s (%v)", trust, (policies.RiskLow + policies.Risk(risk)).Level(),
					got, want, d)
			}
		}
	}
}

func TestWhatTrustDoesNotOverrule(t *testing.T) {
	trusted := policies.Act{AgentID: "a", Trust: 3, Active: true, Type: "x", Category: policies.ActOther}
	tests := map[string]struct {
		change func(*policies.Act)
		want   string
		by     string
	}{
		"nothing":   {func(*policies.Act) {}, "permit", "agents.trusted"},
		"suspended": {func(a *policies.Act) { a.Active = false }, "deny", "agents.inactive"},
		"blocked":   {func(a *policies.Act) { a.Blocked = true }, "deny", "agents.blocked"},
		"another engine": {func(a *policies.Act) { a.Engine, a.Engines = "sql", []string{"math"} }, "deny",
			"agents.engine"},
		"no engine at all": {func(a *policies.Act) { a.Engine, a.Engines = "sql", []string{} }, "deny",
			"agents.engine"},
		"its engine": {func(a *policies.Act) { a.Engine, a.Engines = "sql", []string{"math", "sql"} },
			"permit", "agents.trusted"},
		"dangerous": {func(a *policies.Act) {
			a.Category, a.Risk = policies.ActDangerous,
				policies.RiskCritical
		}, "ask", "agents.dangerous"},
		"beyond all trust":     {func(a *policies.Act) { a.Trust = 4 }, "permit", "agents.within-trust"},
		"below all trust":      {func(a *policies.Act) { a.Trust = -1 }, "deny", ""},
		"a level of its own":   {func(a *policies.Act) { a.Trust, a.Risk = 2, policies.RiskCritical+1 }, "deny", ""},
		"a trust out of range": {func(a *policies.Act) { a.Trust, a.Risk = 4, policies.RiskCritical+1 }, "deny", ""},
	}
	for name, tc := range tests {
		act := trusted
		tc.change(&act)
		d := agentRules(t).DecideAct(act)
		if got := outcome(d); got != tc.want || tc.by != "" && !slices.Contains(d.Policies(), tc.by) {
			t.Errorf("%s: %s by %v, want %s by %q", name, got, d.Policies(), tc.want, tc.by)
		}
	}
}

func TestWithoutRulesNoActIsPermitted(t *testing.T) {
	var none *policies.Engine
	if none.DecideAct(policies.Act{Trust: 3, Active: true}).Allow {
		t.Error("permitted")
	}
}
