package admission_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
)

func allowAll(_, _ agents.Agent) error { return nil }

// changed changes an agent by the JSON of a change.
func (o *office) changed(id, raw string) (agents.Agent, error) {
	o.Helper()
	var c agents.Change
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		o.Fatal(err)
	}
	return o.Change(o.Context(), id, c, "ann", allowAll)
}

// operatorRecords returns the details of the records about changes, oldest first.
func (o *office) operatorRecords() (details []string) {
	o.Helper()
	if err := audit.Tail(o.Context(), o.logDir, 1000, false, func(r audit.Record) error {
		if r.Kind == audit.KindOperator {
			details = append(details, r.Detail)
		}
		return nil
	}); err != nil {
		o.Fatal(err)
	}
	return details
}

// Issue 24: permissions, budget, type and expiry are changed without a new registration. The next
// decision uses them, and the record has each changed member before and after.
func TestChange(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", `, "permissions": {"blocked_tools": ["calculate"]}`)
	if got := o.try(a, action("calculate", "1"), step(1)); got != "DENIED QWED-AGENT-POLICY-001" {
		t.Fatal(got)
	}
	after, err := o.changed(a.ID, `{"type": "autonomous", "permissions": {"blocked_tools": []},
		"budget": {"max_daily_cost_usd": 5}, "expires": "2100-03-02T00:00:00Z"}`)
	if err != nil || after.Type != agents.Autonomous || after.Trust != 2 ||
		!after.Expires.Equal(time.Date(2100, 3, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v, %v", after, err)
	}
	if got := o.try(a, action("calculate", "1"), step(1)); got != "APPROVED" {
		t.Errorf("after the change: %s", got)
	}
	standing, err := o.Budget(t.Context(), a.ID)
	if err != nil || standing.Limits.DayCost.String() != "5" || *standing.Limits.HourRequests != 1000 {
		t.Errorf("got the limits %+v, %v; a limit that was not named is kept", standing.Limits, err)
	}
	records := o.operatorRecords()
	const want = `agent changed from {"budget":{"max_daily_cost_usd":100,"max_requests_per_hour":1000},` +
		`"permissions":{"blocked_tools":["calculate"]},"type":"supervised"} to ` +
		`{"budget":{"max_daily_cost_usd":5,"max_requests_per_hour":1000},"expires":"2100-03-02T00:00:00Z",` +
		`"permissions":{},"type":"autonomous"}: `
	if got := records[len(records)-1]; got != want+a.ID {
		t.Errorf("got  %s\nwant %s", got, want+a.ID)
	}
}

// A change that is refused changes nothing and leaves no record of a change.
func TestRefusedChanges(t *testing.T) {
	o := newOffice(t)
	soon := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	a, _, err := o.Register(t.Context(), agents.Registration{Name: "x", Type: agents.Supervised, PrincipalID: "ann",
		Inherited: agents.Inherited{Expires: soon, Credentials: []caller.Credential{{ID: "tok_1", Expires: soon}}}},
		"ann")
	if err != nil {
		t.Fatal(err)
	}
	before := len(o.operatorRecords())
	for raw, want := range map[string]string{
		`{"type": "root"}`: "type", `{"name": " "}`: "name",
		`{"permissions": {"allowed_engines": ["mth"]}}`:          "permissions.allowed_engines",
		`{"permissions": {"allowed_tools": ["a\u0000"]}}`:        "permissions.allowed_tools",
		`{"budget": {"max_requests_per_hour": -1}}`:              "budget.max_requests_per_hour",
		`{"expires": "tomorrow"}`:                                "expires",
		`{"expires": "2020-01-01T00:00:00Z"}`:                    "expires is not in the future",
		`{"expires": "never"}`:                                   "expires is later than",
		`{"type": "trusted", "expires": "9999-01-01T00:00:00Z"}`: "expires is later than",
	} {
		var invalid *agents.InvalidError
		if _, err := o.changed(a.ID, raw); !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an InvalidError about %s", raw, err, want)
		}
	}
	refused := errors.New("refused")
	if _, err := o.Change(t.Context(), a.ID, agents.Change{Type: new(agents.Trusted)}, "ann",
		func(_, _ agents.Agent) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v, want the error of allow", err)
	}
	if err := o.SetStatus(t.Context(), a.ID, agents.Killed, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.changed(a.ID, `{"name": "y"}`); !errors.Is(err, agents.ErrKilled) {
		t.Errorf("got %v, want ErrKilled", err)
	}
	if err := o.SetStatus(t.Context(), a.ID, agents.Active, "ann"); !errors.Is(err, agents.ErrKilled) {
		t.Errorf("got %v, want ErrKilled", err)
	}
	if _, err := o.changed("agent_none", `{"name": "y"}`); !errors.Is(err, agents.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if got, err := o.Find(t.Context(), a.ID); err != nil || got.Type != agents.Supervised || got.Name != "x" {
		t.Errorf("got %+v, %v; want it unchanged", got, err)
	}
	if records := o.operatorRecords(); len(records) != before+1 {
		t.Errorf("got the records %q, want only that of the end", records[before:])
	}
}

// Changes at the same time are recorded one after the other: each begins where the one before
// ended.
func TestChangesAtTheSameTime(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			if _, err := o.changed(a.ID, `{"name": "`+strings.Repeat("x", i+1)+`"}`); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	var changes [][2]string // a change that was tried again has a record for each attempt, and the last one was made
	for _, detail := range o.operatorRecords()[1:] {
		before, after, _ := strings.Cut(strings.TrimPrefix(detail, `agent changed from {"name":"`), `"} to {"name":"`)
		after, _, _ = strings.Cut(after, `"`)
		changes = slices.DeleteFunc(changes, func(c [2]string) bool { return c[1] == after })
		changes = append(changes, [2]string{before, after})
	}
	name := "DataAnalyst"
	for _, change := range changes {
		if change[0] != name {
			t.Fatalf("got %q, want a change from %q", change, name)
		}
		name = change[1]
	}
	if now, err := o.Find(t.Context(), a.ID); err != nil || now.Name != name {
		t.Errorf("got %q, %v; the last record has %q", now.Name, err, name)
	}
}
