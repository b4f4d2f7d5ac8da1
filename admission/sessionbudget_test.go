package admission_test

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
)

// one ledger for agents, principals and sessions.
func TestPrincipalsAndSessionsHaveBudgetsOfTheirOwn(t *testing.T) {
	o := newOfficeWith(t, map[string]budget.Limits{
		budget.Principal: {DayRequests: new(int64(5))}, budget.Session: {HourRequests: new(int64(2))},
	})
	a, _ := o.register("supervised", "")
	b, _ := o.register("supervised", "")
	in := func(conversation string, n int) string {
		return strings.Replace(step(n), "conv_1", conversation, 1)
	}
	for i, turn := range []struct {
		agent   agents.Agent
		context string
		want    string
	}{
		{a, in("first", 1), "APPROVED"},
		{a, in("first", 2), "APPROVED"},
		{a, in("first", 3), "BUDGET_EXCEEDED QWED-AGENT-BUDGET-002"},
		{a, in("second", 1), "APPROVED"}, // another session of the agent
		{b, in("first", 1), "APPROVED"},  // a session with the same name, of another agent
		{b, in("second", 1), "APPROVED"},
		{b, in("third", 1), "BUDGET_EXCEEDED QWED-AGENT-BUDGET-004"}, // both agents together
	} {
		if got := o.try(turn.agent, action("calculate", string(rune('a'+i))), turn.context); got != turn.want {
			t.Errorf("turn %d: got %s, want %s", i+1, got, turn.want)
		}
	}
	// A refused action takes no step, so the next attempt is not a replay. The error names the
	// exceeded budget.
	if got := o.verify(a, action("calculate", "x"), in("first", 3)); got.Error == nil ||
		!strings.HasPrefix(got.Error.Message, "for all agents of the principal together: ") {
		t.Errorf("got %+v", got)
	}
	standings, err := o.Standings(t.Context(), agents.Accounts{}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]int64{}
	for _, s := range standings {
		requests[s.Account] = s.Day.Requests
	}
	if requests["session:"+a.ID+"/first"] != 2 || requests["session:"+a.ID+"/second"] != 1 ||
		requests["principal:user_123"] != 5 {
		t.Errorf("the ledger has %v", requests)
	}
}
