package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
)

// use decides about a built-in tool.
func (o *office) use(agent, tool string) (admission.Ruling, *admission.Grant, error) {
	return o.acts.Decide(o.Context(), admission.Act{Kind: admission.BuiltIn, Agent: agent, Name: tool, Recorded: true})
}

func TestToolsOfAirlocksOwnAreBounded(t *testing.T) {
	o := newOffice(t, func(opts *options) {
		opts.Prices = admission.Prices{Actions: map[string]budget.Amount{"cmvk_verify": 3 * budget.USD}}
	})
	a, _ := o.register("supervised",
		`, "budget": {"max_daily_cost_usd": 10, "max_requests_per_hour": 100}, "permissions": {"blocked_tools": `+
			`["cmvk_review"]}`)
	use := func(tool string) string {
		t.Helper()
		r, _, err := o.use(a.ID, tool)
		if err != nil {
			t.Fatal(err)
		}
		if r.Error == nil {
			return ""
		}
		return r.Refusal()
	}
	if got := use("cmvk_review"); !strings.Contains(got, "blocked_tools") {
		t.Errorf("blocked: %q", got)
	}
	var granted atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r, _, err := o.use(a.ID, "cmvk_verify"); err == nil && r.Error == nil {
				granted.Add(1)
			} else if err != nil || r.Error.Reason != admission.OverBudget {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	all.Wait()
	if granted.Load() != 3 {
		t.Errorf("%d uses at 3 dollars of 10", granted.Load())
	}
	if got := use("file_read"); got != "" {
		t.Errorf("what costs nothing: %q", got)
	}
	o.clock.Advance(24 * time.Hour)
	if got := use("cmvk_verify"); got != "" {
		t.Errorf("on the next day: %q", got)
	}
	for status, want := range map[agents.Status]string{agents.Suspended: "the agent is suspended", agents.Active: ""} {
		if err := o.SetStatus(t.Context(), a.ID, status, "ann"); err != nil {
			t.Fatal(err)
		}
		if got := use("file_read"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", status, got)
		}
	}
	if _, _, err := o.use("none", "file_read"); !errors.Is(err, agents.ErrUnknown) {
		t.Error(err)
	}
}

// verification requests a decision about a verification and returns it with its grant.
func (o *office) verification(id string, v admission.Act) (string, *admission.Grant) {
	o.Helper()
	v.Kind, v.Agent = admission.Verification, id
	r, grant, err := o.acts.Decide(o.Context(), v)
	if err != nil {
		o.Fatal(err)
	}
	return word(r), grant
}

// counted returns today's spending and request count of an agent.
func (o *office) counted(id string) string {
	o.Helper()
	s, err := o.Budget(o.Context(), id)
	if err != nil {
		o.Fatal(err)
	}
	return fmt.Sprintf("%s USD, %d requests", s.Day.Cost, s.Day.Requests)
}

// Each verification counts once and is debited its price, and a batch that of each item. A
// verification that was never carried out is refunded, and the log matches the ledger.
func TestVerificationsAreDebited(t *testing.T) {
	o := newOffice(t, func(opts *options) {
		opts.Prices = admission.Prices{Actions: map[string]budget.Amount{"verify_math": 2 * budget.USD,
			"verify_sql": 1 * budget.USD, "cmvk_verify": budget.USD / 2}}
	})
	a, _ := o.register("supervised",
		`, "budget": {"max_daily_cost_usd": 10}, "permissions": {"blocked_tools": ["verify_sql"]}`)
	math := admission.Act{Name: "verify_math", Engine: "math"}
	for _, step := range []struct {
		what     string
		question admission.Act
		unasked  bool // no engine was available
		want     string
		spent    string
	}{
		{"a question", math, false, "APPROVED", "2 USD, 1 requests"},
		{"one that no engine was asked", math, true, "APPROVED", "2 USD, 2 requests"},
		{"a batch", admission.Act{Name: "verify_batch",
			Parts: []string{"verify_math", "verify_math", "verify_fact"}}, false, "APPROVED", "6 USD, 3 requests"},
		{"a batch with a part that is blocked", admission.Act{Name: "verify_batch",
			Parts: []string{"verify_sql"}}, false, "DENIED QWED-AGENT-POLICY-001", "6 USD, 4 requests"},
		{"what is blocked", admission.Act{Name: "verify_sql", Engine: "sql"}, false,
			"DENIED QWED-AGENT-POLICY-001", "6 USD, 5 requests"},
		{"a question", math, false, "APPROVED", "8 USD, 6 requests"},
		{"a question", math, false, "APPROVED", "10 USD, 7 requests"},
		{"one too many", math, false, "BUDGET_EXCEEDED QWED-AGENT-BUDGET-001", "10 USD, 7 requests"},
		{"one without a price", admission.Act{Name: "verify_fact", Engine: "fact"}, false, "APPROVED",
			"10 USD, 8 requests"},
	} {
		got, grant := o.verification(a.ID, step.question)
		if got != step.want || (grant != nil) != (got == "APPROVED") {
			t.Errorf("%s: got %s, want %s", step.what, got, step.want)
		}
		if grant != nil {
			for range 2 { // the second call refunds nothing
				if err := grant.End(t.Context(), !step.unasked, 0); err != nil {
					t.Error(err)
				}
			}
		}
		if got := o.counted(a.ID); got != step.spent {
			t.Errorf("%s: got %s, want %s", step.what, got, step.spent)
		}
	}
	o.clock.Advance(24 * time.Hour)
	if r, _, err := o.use(a.ID, "cmvk_verify"); err != nil || r.Error != nil {
		t.Errorf("%+v, %v", r, err)
	}
	var sum budget.Amount
	_, err := audit.Scan(o.logDir, 1<<20, []string{a.ID},
		func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
			r, err := record()
			if err != nil || r.CostUSD == "" {
				return true, err
			}
			sign := budget.Amount(1)
			if strings.HasPrefix(r.CostUSD, "-") {
				sign = -1
			}
			cost, err := budget.ParseAmount(strings.TrimPrefix(r.CostUSD, "-"))
			sum += sign * cost
			return true, err
		})
	if want := 10*budget.USD + budget.USD/2; err != nil || sum != want {
		t.Errorf("the log has %s USD, want %s: %v", sum, want, err)
	}
}

// A list of engines applies to verifications too. A verification that any engine may answer is
// refused.
func TestVerificationsNeedTheirEngine(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", `, "permissions": {"allowed_engines": ["math"]}`)
	for v, want := range map[string]string{"math": "APPROVED", "code": "DENIED QWED-AGENT-POLICY-001",
		"": "DENIED QWED-AGENT-POLICY-001"} {
		if got, _ := o.verification(a.ID, admission.Act{Name: "verify_it", Engine: v}); got != want {
			t.Errorf("%q: got %s, want %s", v, got, want)
		}
	}
	act := admission.Act{Kind: admission.Verification, Agent: "none"}
	if _, _, err := o.acts.Decide(t.Context(), act); !errors.Is(err, agents.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}
