package budget_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// book is a ledger whose clock is set by the test.
type book struct {
	*testing.T
	db     *database.DB
	ledger *budget.Ledger
	now    time.Time
}

func newBook(t *testing.T) *book {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), budget.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := &book{T: t, db: db, now: time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC)}
	b.ledger = budget.New(func() time.Time { return b.now },
		map[string]budget.Limits{budget.Session: {HourRequests: new(int64(2))}})
	return b
}

func (b *book) limit(account, limits string) {
	b.Helper()
	var l budget.Limits
	if err := json.Unmarshal([]byte(limits), &l); err != nil {
		b.Fatal(err)
	}
	if err := b.db.Update(
		b.Context(), func(tx database.Tx) error {
			return b.ledger.SetLimits(
				b.Context(), tx, account, l)
		}); err != nil {
		b.Fatal(err)
	}
}

func (b *book) charge(c budget.Charge, accounts ...string) error {
	return b.db.Update(b.Context(), func(tx database.Tx) error { return b.ledger.Charge(b.Context(), tx, accounts, c) })
}

func (b *book) wantCode(want string, c budget.Charge, accounts ...string) {
	b.Helper()
	got := ""
	var exceeded *budget.Exceeded
	if err := b.charge(c, accounts...); errors.As(err, &exceeded) {
		got = exceeded.Code
	} else if err != nil {
		b.Fatal(err)
	}
	if got != want {
		b.Errorf("code %q, want %q", got, want)
	}
}

func (b *book) standing(account string) (s budget.Standing) {
	b.Helper()
	err := b.db.View(b.Context(), func(tx database.Tx) (err error) {
		s, err = b.ledger.Standing(b.Context(), tx, account)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func TestEachLimitHasItsCode(t *testing.T) {
	tests := map[string]struct {
		limits string
		first  budget.Charge // within the limit
		next   budget.Charge // exceeds the limit
		code   string
	}{
		"cost of a day": {`{"max_daily_cost_usd": 1.5}`, budget.Charge{Cost: budget.USD},
			budget.Charge{Cost: budget.USD/2 + 1}, budget.CodeDayCost},
		"requests an hour": {`{"max_requests_per_hour": 1}`, budget.Charge{}, budget.Charge{},
			budget.CodeHourRequests},
		"requests a day": {`{"max_requests_per_day": 1}`, budget.Charge{}, budget.Charge{}, budget.CodeDayRequests},
		"cost of a request": {`{"max_per_request_cost_usd": 0.1}`, budget.Charge{Cost: budget.USD / 10},
			budget.Charge{Cost: budget.USD/10 + 1}, budget.CodeRequestCost},
		"tokens": {`{"max_tokens_per_request": 10}`, budget.Charge{Tokens: 10}, budget.Charge{Tokens: 11},
			budget.CodeRequestTokens},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			b.limit("agent:a", tc.limits)
			b.wantCode("", tc.first, "agent:a")
			b.wantCode(tc.code, tc.next, "agent:a")
			b.wantCode("", tc.next, "agent:another")
		})
	}
}

func TestALimitOfZeroAllowsNothing(t *testing.T) {
	for limits, code := range map[string]string{
		`{"max_daily_cost_usd": 0}`:    budget.CodeDayCost,
		`{"max_requests_per_hour": 0}`: budget.CodeHourRequests,
		`{"max_requests_per_day": 0}`:  budget.CodeDayRequests,
	} {
		b := newBook(t)
		b.limit("agent:a", limits)
		b.wantCode(code, budget.Charge{}, "agent:a")
	}
}

func TestHoursAndDaysBeginAnew(t *testing.T) {
	b := newBook(t)
	b.limit("agent:a", `{"max_requests_per_hour": 1, "max_daily_cost_usd": 1}`)
	b.wantCode("", budget.Charge{Cost: budget.USD}, "agent:a")
	b.wantCode(budget.CodeDayCost, budget.Charge{Cost: 1}, "agent:a")
	b.now = b.now.Add(time.Minute) // midnight
	b.wantCode("", budget.Charge{Cost: budget.USD}, "agent:a")
	if s := b.standing("agent:a"); s.Day.Cost != budget.USD || s.Hour.Requests != 1 {
		t.Errorf("after midnight: %+v", s)
	}
}

func TestAClockThatIsSetBackFindsWhatWasSpent(t *testing.T) {
	b := newBook(t)
	b.limit("agent:a", `{"max_requests_per_hour": 1}`)
	b.wantCode("", budget.Charge{}, "agent:a")
	b.now = b.now.Add(48 * time.Hour)
	b.wantCode("", budget.Charge{}, "agent:a")
	b.now = b.now.Add(-48 * time.Hour)
	b.wantCode(budget.CodeHourRequests, budget.Charge{}, "agent:a")
}

func TestSeveralAccountsAreDebitedTogetherOrNot(t *testing.T) {
	b := newBook(t)
	b.limit("principal:ann", `{"max_daily_cost_usd": 1}`)
	b.wantCode(budget.CodeDayCost, budget.Charge{Cost: 2 * budget.USD}, "agent:a", "principal:ann", "session:s")
	for _, account := range []string{"agent:a", "principal:ann", "session:s"} {
		if s := b.standing(account); s.Day.Requests != 0 || s.Day.Cost != 0 {
			t.Errorf("%s was debited: %+v", account, s)
		}
	}
}

func TestNoCentIsLostBetweenTogetherChargers(t *testing.T) {
	b := newBook(t)
	b.limit("agent:a", `{"max_daily_cost_usd": 0.5}`)
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() {
			var exceeded *budget.Exceeded
			if err := b.charge(budget.Charge{Cost: budget.USD / 100}, "agent:a"); err != nil &&
				!errors.As(err, &exceeded) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if s := b.standing("agent:a"); s.Day.Cost != budget.USD/2 || s.Day.Requests != 50 {
		t.Errorf("%+v, want exactly half a dollar in 50 requests", s.Day)
	}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]string{
		"100": "100", "45.50": "45.5", "1e2": "100", "0": "0", "0.000000001": "0.000000001", "0.1": "0.1",
		"1000000000": "1000000000",
	} {
		a, err := budget.ParseAmount(text)
		if err != nil || a.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, a, err, want)
		}
	}
	for _, text := range []string{"", "-1", "NaN", "Inf", "1/3", "0x10", "1_000", "0.0000000001", "1e99", "1e-99",
		"1e999999999", "1000000000.1", "ten", "1 "} {
		if a, err := budget.ParseAmount(text); err == nil {
			t.Errorf("%q was read as %s", text, a)
		}
	}
}

// each session has the limits of its kind, in addition to those of the agent.
func TestLimitsOfAKindHoldForEachOfItsAccounts(t *testing.T) {
	b := newBook(t)
	one := budget.Charge{Cost: 1}
	b.wantCode("", one, "a", "session:a/1")
	b.wantCode("", one, "a", "session:a/1")
	b.wantCode(budget.CodeHourRequests, one, "a", "session:a/1")
	b.wantCode("", one, "a", "session:a/2")
	b.limit("session:a/1", `{"max_requests_per_hour": 3}`) // its own limits take precedence
	b.wantCode("", one, "a", "session:a/1")
	b.wantCode(budget.CodeHourRequests, one, "a", "session:a/1")
	b.wantCode("", one, "a")
}

// Sessions are short-lived: their number does not make the ledger grow without limit.
func TestSessionsThatAreLongOverAreForgotten(t *testing.T) {
	b := newBook(t)
	const sessions, batch = 12_000, 500 // two lines each; a transaction has a time limit
	for first := 0; first < sessions; first += batch {
		if err := b.db.Update(b.Context(), func(tx database.Tx) error {
			for i := range batch {
				b.now = b.now.Add(time.Hour)
				if err := b.ledger.Record(b.Context(), tx, []string{fmt.Sprintf("session:a/%d", first+i)},
					budget.Charge{Cost: 1}); err != nil {
					return err
				}
			}
			return b.ledger.Record(b.Context(), tx, []string{"a"}, budget.Charge{Cost: 1})
		}); err != nil {
			t.Fatal(err)
		}
	}
	var kept int
	var ends []string
	if err := b.db.View(b.Context(), func(tx database.Tx) error {
		return tx.QueryRowContext(b.Context(), `SELECT count(DISTINCT account) FROM budget_usage`).Scan(&kept)
	}); err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"a", "session:a/0", fmt.Sprintf("session:a/%d", sessions-1)} {
		var there bool
		if err := b.db.QueryRow(b.Context(), `SELECT count(*) > 0 FROM budget_usage WHERE account = ?`, []any{account},
			&there); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, fmt.Sprint(there))
	}
	if got := strings.Join(ends, " "); kept > 11_000 || got != "true false true" {
		t.Errorf("%d accounts are left; a, the first and the last session are among them: %s", kept, got)
	}
}
