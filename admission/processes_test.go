package admission_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// second opens the agents of an office as another process would, with its own database connection.
func (o *office) second(dir string) *office {
	o.Helper()
	db := officeDatabase(o.T, dir)
	other := &office{T: o.T, logDir: o.logDir, person: o.person, clock: o.clock, opts: o.opts}
	other.Service = agents.New(agents.Options{Database: db, Log: o.opts.Log, Now: o.clock.Now})
	other.opts.AgentOptions.Agents, other.opts.AgentOptions.Database = other.Service, db
	other.begin()
	o.Cleanup(func() {
		other.end()
		if err := db.Close(); err != nil {
			o.Error(err)
		}
	})
	return other
}

// A process keeps what its decisions read of agents, conversations and budgets. It sees each change
// by another process at its next decision.
func TestDecisionsSeeTheChangesOfOtherProcesses(t *testing.T) {
	o := newOffice(t, func(opts *options) { opts.Prices.Default = budget.USD })
	other := o.second(filepath.Dir(o.logDir))
	offices := []*office{o, other}

	t.Run("budgets and steps", func(t *testing.T) {
		a, _ := o.register("supervised", `, "budget": {"max_daily_cost_usd": 10}`)
		approved := 0
		for i := range 24 {
			if got := offices[i%2].try(a, action("calculate", fmt.Sprint(i)), step(i+1)); got == admission.Approved {
				approved++
			}
			if got := offices[(i+1)%2].try(a, action("calculate", "again"), step(i+1)); approved == i+1 &&
				got != "DENIED QWED-AGENT-LOOP-002" {
				t.Errorf("step %d again: %s", i+1, got)
			}
		}
		if s := other.spent(a); approved != 10 || s.Cost != 10*budget.USD {
			t.Errorf("%d approved, %s spent, want 10", approved, s.Cost)
		}
	})
	t.Run("the state of the agent", func(t *testing.T) {
		a, _ := o.register("supervised", "")
		n := 0
		try := func(by *office) string { n++; return by.try(a, action("calculate", fmt.Sprint(n)), step(n)) }
		for _, by := range []*office{o, other, o} {
			if got := try(by); got != admission.Approved {
				t.Fatal(got)
			}
		}
		other.status(a, agents.Suspended)
		if got := try(o); got != "DENIED QWED-AGENT-POLICY-001" {
			t.Errorf("suspended: %s", got)
		}
		o.status(a, agents.Active)
		if got := try(other); got != admission.Approved {
			t.Errorf("active again: %s", got)
		}
		if _, err := o.changed(a.ID, `{"permissions": {"blocked_tools": ["calculate"]}}`); err != nil {
			t.Fatal(err)
		}
		if got := try(other); got != "DENIED QWED-AGENT-POLICY-001" {
			t.Errorf("blocked: %s", got)
		}
	})
	t.Run("limits", func(t *testing.T) {
		a, _ := o.register("supervised", `, "budget": {"max_requests_per_day": 100}`)
		if got := o.try(a, action("calculate", "1"), step(1)); got != admission.Approved {
			t.Fatal(got)
		}
		if _, err := other.changed(a.ID, `{"budget": {"max_requests_per_day": 1}}`); err != nil {
			t.Fatal(err)
		}
		if r := o.verify(a, action("calculate", "2"), step(2)); r.Decision != admission.BudgetExceeded {
			t.Errorf("%+v", r)
		}
	})
}

// A decision that cannot be stored does not change what the next ones read.
func TestAFailedDecisionLeavesNothingBehind(t *testing.T) {
	if !databasetest.IsSQLite() {
		t.Skip("the trigger is one of SQLite")
	}
	o := newOffice(t, func(opts *options) { opts.Prices.Default = budget.USD })
	a, _ := o.register("supervised", `, "budget": {"max_daily_cost_usd": 2}`)
	if got := o.try(a, action("calculate", "1"), step(1)); got != admission.Approved {
		t.Fatal(got)
	}
	fail := func(statement string) {
		t.Helper()
		err := o.opts.Database.Update(t.Context(), func(tx database.Tx) error {
			_, err := tx.ExecContext(t.Context(), statement)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(`CREATE TRIGGER full BEFORE UPDATE ON conversation BEGIN SELECT RAISE(ABORT, 'full'); END`)
	for i := range 3 {
		_, _, err := o.acts.Decide(t.Context(), announced(a.ID, action("calculate", fmt.Sprint(i)), step(2)))
		if err == nil || errors.Is(err, agents.ErrUnknown) {
			t.Fatalf("got %v, want the error of the trigger", err)
		}
	}
	fail(`DROP TRIGGER full`)
	if got := o.try(a, action("calculate", "2"), step(2)); got != admission.Approved {
		t.Errorf("after three failures: %s", got)
	}
	if s := o.spent(a); s.Cost != 2*budget.USD {
		t.Errorf("%s spent, want 2", s.Cost)
	}
}
