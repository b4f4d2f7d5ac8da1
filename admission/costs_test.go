package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
)

// names returns the accounts of all pages of at most n.
func (o *office) names(only agents.Accounts, n int) string {
	o.Helper()
	var names []string
	for after := ""; ; {
		page, err := o.Standings(o.Context(), only, after, n)
		if err != nil {
			o.Fatal(err)
		}
		for _, one := range page {
			after = one.Account
			names = append(names, fmt.Sprintf("%s=%s", one.Account, one.Name))
		}
		if len(page) < n {
			return strings.Join(names, " ")
		}
	}
}

// Issue 24: accounts are listed by pages, with the names of their agents, and selected by kind,
// agent and principal; the report has what a principal and an agent spent on each day.
func TestAccountsAndCosts(t *testing.T) {
	o := newOfficeWith(t, map[string]budget.Limits{budget.Session: {DayRequests: new(int64(100))}},
		func(opts *options) { opts.Prices.Default = budget.USD })
	a, _ := o.register("trusted", "")
	b, _ := o.register("trusted", "")
	other := agents.Registration{Name: "Other", Type: agents.Trusted, PrincipalID: "user_1234"}
	c, _, err := o.Register(t.Context(), other, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if b.ID < a.ID {
		a, b = b, a
	}
	spend := func(agent agents.Agent, n int) {
		t.Helper()
		if got := o.try(agent, action("calculate", fmt.Sprint(n)), step(n)); got != "APPROVED" {
			t.Fatal(got)
		}
	}
	spend(a, 1)
	o.clock.Advance(24 * time.Hour)
	spend(a, 2)
	spend(b, 1)
	spend(c, 1)
	nameOf := func(agent agents.Agent) string { return "agent:" + agent.ID + "=" + agent.Name }
	session := func(agent agents.Agent) string { return "session:" + agent.ID + "/conv_1=" + agent.Name }
	for _, n := range []int{1, 2, 100} {
		for want, only := range map[string]agents.Accounts{
			nameOf(a) + " " + nameOf(b) + " principal:user_123=": {Principal: "user_123"},
			nameOf(a) + " " + session(a):                         {Agent: a.ID},
			"principal:user_123= principal:user_1234=":           {Kind: "principal"},
			"": {Kind: "princip"},
		} {
			if got := o.names(only, n); got != want {
				t.Errorf("%+v in pages of %d: got %q, want %q", only, n, got, want)
			}
		}
		if got := len(strings.Fields(o.names(agents.Accounts{}, n))); got != 8 {
			t.Errorf("got %d accounts in pages of %d, want 3 agents, 2 principals, 3 sessions", got, n)
		}
	}
	report := func(only agents.Accounts) (lines []string) {
		costs, err := o.Costs(t.Context(), only, o.clock.Now().AddDate(0, 0, -29), o.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range costs {
			lines = append(lines, fmt.Sprintf("%s %s %s %d", c.Day[5:], c.Account, c.Cost.Cost, c.Requests))
		}
		return lines
	}
	for want, only := range map[string]agents.Accounts{
		"03-01 principal:user_123 1 1, 03-02 principal:user_123 2 2, 03-02 principal:user_1234 1 1": {
			Kind: "principal"},
		"03-01 principal:user_123 1 1, 03-02 principal:user_123 2 2": {Kind: "principal",
			Principal: "user_123"},
		fmt.Sprintf("03-01 agent:%s 1 1, 03-02 agent:%s 1 1, 03-02 agent:%s 1 1", a.ID, a.ID, b.ID): {Kind: "agent",
			Principal: "user_123"},
	} {
		if got := strings.Join(report(only), ", "); got != want {
			t.Errorf("%+v: got %q, want %q", only, got, want)
		}
	}
}
