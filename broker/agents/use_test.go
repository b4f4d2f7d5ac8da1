package agents_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/agents"
	"github.com/airlock-mcp/airlock/broker/budget"
)

func TestToolsOfAirlocksOwnAreBounded(t *testing.T) {
	o := newOffice(t, func(opts *agents.Options) {
		opts.Prices = agents.Prices{Actions: map[string]budget.Amount{"cmvk_verify": 3 * budget.USD}}
	})
	a, _ := o.register("supervised", `, "budget": {"max_daily_cost_usd": 10, "max_requests_per_hour": 100}, "permissions": {"blocked_tools": ["cmvk_review"]}`)
	use := func(tool string) string {
		t.Helper()
		refused, err := o.Use(t.Context(), a.ID, tool)
		if err != nil {
			t.Fatal(err)
		}
		if refused == nil {
			return ""
		}
		return refused.Error()
	}
	if got := use("cmvk_review"); !strings.Contains(got, "blocked_tools") {
		t.Errorf("blocked: %q", got)
	}
	var granted atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if refused, err := o.Use(t.Context(), a.ID, "cmvk_verify"); err == nil && refused == nil {
				granted.Add(1)
			} else if err != nil || !strings.HasPrefix(refused.Code, "QWED-AGENT-BUDGET-") {
				t.Errorf("%v, %v", refused, err)
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
	o.pass(24 * time.Hour)
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
	if _, err := o.Use(t.Context(), "none", "file_read"); !errors.Is(err, agents.ErrUnknown) {
		t.Error(err)
	}
}
