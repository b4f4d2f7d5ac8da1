package admission_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// of concurrent identical calls, two are approved.
func TestConcurrentCallsAreDecidedOneAfterTheOther(t *testing.T) {
	o := newOffice(t, func(opts *options) { opts.Prices.Default = budget.USD })
	a, _ := o.register("supervised", `, "budget": {"max_daily_cost_usd": 100}`)
	var approved atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, _ := o.act(call(a, "get_weather", "")); got == "APPROVED" {
				approved.Add(1)
			} else if got != "DENIED QWED-AGENT-LOOP-003" {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if s := o.spent(a); approved.Load() != 2 || s.Cost != 2*budget.USD || s.Requests != 20 {
		t.Errorf("%d approved, %+v", approved.Load(), s)
	}
}

// PostgreSQL refuses each commit of a conversation once. The repeated decision has the effects of one: a
// step, a debit, a question.
func TestARepeatedDecisionHasTheEffectsOfOne(t *testing.T) {
	if databasetest.IsSQLite() {
		t.Skip("SQLite refuses no commit")
	}
	o := newOffice(t, func(opts *options) { opts.Prices.Default = budget.USD })
	a, _ := o.register("trusted", `, "budget": {"max_daily_cost_usd": 100}`)
	if err := o.opts.Database.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), `CREATE SEQUENCE commits;
			CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('commits') % 2 = 1 THEN RAISE EXCEPTION 'refused' USING ERRCODE = '40001'; END IF;
				RETURN NULL;
			END $$;
			CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR UPDATE ON conversation
				DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if got, _ := o.act(call(a, "get_weather", fmt.Sprint(i))); got != "APPROVED" {
			t.Error(got)
		}
	}
	if s, state := o.spent(a), o.conversation(a, "ses_1"); s.Cost != 3*budget.USD || s.Requests != 3 ||
		!strings.HasPrefix(state, `{"steps":3,"last":3,`) {
		t.Errorf("%+v, the conversation is %s", s, state)
	}
	for i := range 8 { // as many questions as one agent may have open
		if got := o.try(a, action("send_money", fmt.Sprint(i)), step(i+1)); got != "PENDING" {
			t.Errorf("question %d: %s", i, got)
		}
	}
}

func (o *office) conversation(a agents.Agent, id string) (state string) {
	o.Helper()
	if err := o.opts.Database.View(o.Context(), func(tx database.Tx) error {
		return tx.QueryRowContext(o.Context(), `SELECT state FROM conversation WHERE agent = ? AND id = ?`, a.ID, id).
			Scan(&state)
	}); err != nil {
		o.Fatal(err)
	}
	return state
}

// Concurrent acts without a number take different steps, and each is debited once.
func TestConcurrentActsTakeDifferentSteps(t *testing.T) {
	o := newOffice(t, func(opts *options) { opts.Prices.Default = budget.USD })
	a, _ := o.register("supervised", `, "budget": {"max_daily_cost_usd": 100}`)
	const acts = 20
	var all sync.WaitGroup
	for i := range acts {
		all.Go(func() {
			if got, _ := o.act(call(a, "get_weather", fmt.Sprint(i))); got != "APPROVED" {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if got := o.conversation(a, "ses_1"); !strings.HasPrefix(got, fmt.Sprintf(`{"steps":%d,"last":%d,`, acts, acts)) {
		t.Errorf("the conversation is %s", got)
	}
	if s := o.spent(a); s.Cost != acts*budget.USD || s.Requests != acts {
		t.Errorf("%+v", s)
	}
}
