package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// next returns the next question put to the person.
func (o *office) next() asked {
	o.Helper()
	select {
	case a := <-o.person.questions:
		return a
	case <-o.Context().Done():
		o.Fatal("no question")
		return asked{}
	}
}

// answerAndRestart answers the next question and restarts the service, so that the answer is
// stored.
func (o *office) answerAndRestart(answer approval.Answer) {
	o.Helper()
	o.next().answer <- approval.Verdict{Answer: answer, By: "ann, console"}
	o.restart()
}

// A-011, T45: an approved action is done once, at its step.
func TestApprovedOnce(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	mail := action("send_email", "hello")
	first := o.verify(a, mail, step(1))
	if first.Decision != admission.Pending || first.ApprovalID == "" {
		t.Fatalf("%+v", first)
	}
	if again := o.verify(a, mail, step(1)); again.Decision != admission.Pending ||
		again.ApprovalID != first.ApprovalID {
		t.Errorf("asked again: %+v, want the same question", again)
	}
	q := o.next()
	if q.question.ID != first.ApprovalID || q.question.Principal != a.ID ||
		!strings.Contains(string(q.question.Arguments), "hello") {
		t.Errorf("the person is asked %+v", q.question)
	}
	q.answer <- approval.Verdict{Answer: approval.Yes, By: "ann, console"}
	d := o.verify(a, mail, step(1))
	for d.Decision == admission.Pending {
		d = o.verify(a, mail, step(1))
	}
	if d.Decision != admission.Approved || d.Approver != "ann, console" {
		t.Errorf("after the answer: %+v", d)
	}
	if got := o.try(a, mail, step(1)); got != "DENIED QWED-AGENT-LOOP-002" {
		t.Errorf("the same step again: %s", got)
	}
	if got := o.try(a, mail, step(2)); got != "PENDING" {
		t.Errorf("the next step: %s, want a question of its own", got)
	}
}

// Issue 23: an approved action was done after the credential of the person who approved it had ended.
func TestAnApprovalEndsWithItsApprover(t *testing.T) {
	ann := caller.Caller{Principal: "ann", Kind: caller.User, Session: "tok_1",
		Credentials: []caller.Credential{{ID: "tok_1", Scopes: []string{caller.ScopeApprove}}}}
	bob := ann
	bob.Principal, bob.Credentials = "bob", []caller.Credential{{ID: "tok_2"}}
	ended := "nobody"
	o := newOffice(t, func(opts *options) {
		opts.InForce = func(who caller.Caller) bool { return who.Principal != ended }
	})
	a, _ := o.register("supervised", "")
	mail := action("send_email", "hello")
	for n, test := range []struct {
		approvers []caller.Caller
		ends      string
		want      string
	}{
		{nil, "ann", "APPROVED"}, // a person at this machine
		{[]caller.Caller{ann}, "nobody", "APPROVED"},
		{[]caller.Caller{ann}, "ann", "PENDING"},
		{[]caller.Caller{ann, bob}, "bob", "PENDING"},
	} {
		ended = "nobody"
		mail := action("send_email", fmt.Sprint(n))
		if got := o.try(a, mail, step(n+1)); got != "PENDING" {
			t.Fatalf("%d: got %s, want a question", n, got)
		}
		o.next().answer <- approval.Verdict{Answer: approval.Yes, By: "ann, console", Approvers: test.approvers}
		o.restart()
		ended = test.ends
		if got := o.try(a, mail, step(n+1)); got != test.want {
			t.Errorf("%v, then %s ends: got %s, want %s", test.approvers, test.ends, got, test.want)
		}
		if test.want == "PENDING" { // the person is asked again
			o.next().answer <- approval.Verdict{Answer: approval.No}
		}
	}
	without := newOffice(t)
	b, _ := without.register("supervised", "")
	without.try(b, mail, step(1))
	without.next().answer <- approval.Verdict{Answer: approval.Yes, Approvers: []caller.Caller{ann}}
	without.restart()
	if got := without.try(b, mail, step(1)); got != "PENDING" {
		t.Errorf("nobody knows whether it is in force: got %s", got)
	}
	without.next().answer <- approval.Verdict{Answer: approval.No}
}

func TestAnAnswerHoldsForWhatWasAsked(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	mail := action("send_email", "hello")
	o.verify(a, mail, step(1))
	o.next().answer <- approval.Verdict{Answer: approval.Yes}
	for name, got := range map[string]string{
		"another text":         o.try(a, action("send_email", "hello!"), step(1)),
		"another step":         o.try(a, mail, step(2)),
		"another conversation": o.try(a, mail, `{"conversation_id": "conv_2", "step_number": 1}`),
		"another state":        o.try(a, mail, step(1, unchanged)),
	} {
		if got != "PENDING" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestARefusedActionIsNotAskedAgain(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	mail := action("send_email", "hello")
	o.verify(a, mail, step(1))
	o.answerAndRestart(approval.No)
	if got := o.try(a, mail, step(1)); got != "DENIED "+admission.CodeRefused {
		t.Errorf("after a refusal: %s", got)
	}
	if got := o.try(a, action("calculate", "1"), step(1)); got != "APPROVED" {
		t.Errorf("another action at this step: %s", got)
	}
}

func TestAnswersAndQuestionsAfterARestart(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	answered, open, lapsed := action("send_email", "answered"), action("send_email", "open"),
		action("send_email", "lapsed")
	o.verify(a, lapsed, step(3))
	o.answerAndRestart(approval.Yes)
	o.clock.Advance(time.Hour)
	o.verify(a, answered, step(1))
	o.answerAndRestart(approval.Yes)
	unanswered := o.verify(a, open, step(2))
	o.next()
	o.restart()
	if got := o.try(a, answered, step(1)); got != "APPROVED" {
		t.Errorf("what was approved: %s", got)
	}
	if d := o.verify(a, open, step(2)); d.Decision != admission.Pending || d.ApprovalID == unanswered.ApprovalID {
		t.Errorf("what was open: %+v, want a new question", d)
	}
	if got := o.try(a, lapsed, step(3)); got != "PENDING" {
		t.Errorf("what was approved an hour ago: %s", got)
	}
}

// a pending action is not progress, and counts as a repetition.
func TestPendingActionsAndLoops(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	mail := action("send_email", "hello")
	for n, act := range []string{mail, action("calculate", "1"), mail, action("calculate", "2"), mail,
		action("calculate", "3"), mail} {
		want := map[bool]string{true: "PENDING", false: "APPROVED"}[act == mail]
		if got := o.try(a, act, step(n+1, unchanged)); got != want {
			t.Errorf("step %d: %s, want %s", n+1, got, want)
		}
	}
	if got := o.try(a, mail, step(8, unchanged)); got != "PENDING" {
		t.Errorf("twice in a row: %s", got)
	}
	if got := o.try(a, mail, step(9, unchanged)); got != "DENIED QWED-AGENT-LOOP-003" {
		t.Errorf("three times in a row: %s", got)
	}
}

func TestAPersonIsNotFlooded(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	for n := range 8 {
		if got := o.try(a, action("send_email", fmt.Sprint(n)), step(n+1)); got != "PENDING" {
			t.Fatalf("question %d: %s", n, got)
		}
	}
	if got := o.try(a, action("send_email", "ninth"), step(9)); got != "DENIED "+admission.CodeManyOpen {
		t.Errorf("the ninth: %s", got)
	}
}

// budgets.
func TestBudgets(t *testing.T) {
	o := newOffice(t, func(opts *options) {
		opts.Prices = admission.Prices{Actions: map[string]budget.Amount{"execute_sql": budget.USD / 2},
			Default: budget.USD / 100}
	})
	a, _ := o.register("supervised", `, "budget": {"max_daily_cost_usd": 0.75, "max_requests_per_hour": 4}`)
	selects := func(n int) string { return action("execute_sql", fmt.Sprintf("SELECT %d", n)) }
	for _, turn := range []struct {
		action string
		step   int
		want   string
	}{
		{selects(1), 1, "APPROVED"},
		{selects(2), 2, "BUDGET_EXCEEDED QWED-AGENT-BUDGET-001"},
		{action("calculate", "1"), 2, "APPROVED"}, // the step was not consumed
		{action("calculate", "1"), 2, "DENIED QWED-AGENT-LOOP-002"},
		{action("teleport", "1"), 3, "DENIED QWED-AGENT-ACTION-001"}, // denials are requests
		{action("calculate", "2"), 3, "BUDGET_EXCEEDED QWED-AGENT-BUDGET-002"},
	} {
		if got := o.try(a, turn.action, step(turn.step)); got != turn.want {
			t.Errorf("step %d %s: %s, want %s", turn.step, turn.action, got, turn.want)
		}
	}
	s, err := o.Budget(t.Context(), a.ID)
	if err != nil || s.Day.Cost.String() != "0.51" || s.Hour.Requests != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	o.clock.Advance(time.Hour)
	if got := o.try(a, action("calculate", "2"), step(3)); got != "APPROVED" {
		t.Errorf("in the next hour: %s", got)
	}
	o.clock.Advance(24 * time.Hour)
	if got := o.try(a, selects(2), step(4)); got != "APPROVED" {
		t.Errorf("on the next day: %s", got)
	}
}

func TestABudgetOfZeroAllowsNothing(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("trusted", `, "budget": {"max_daily_cost_usd": 0}`)
	if got := o.try(a, action("calculate", "1"), step(1)); got != "BUDGET_EXCEEDED QWED-AGENT-BUDGET-001" {
		t.Error(got)
	}
}

// tools.
func TestTools(t *testing.T) {
	o := newOffice(t)
	custom, _ := o.register(
		"supervised", `, "permissions": {"allowed_tools": ["my_custom_tool", "send_money"], "blocked_tools": `+
			`["send_email"]}`)
	plain, _ := o.register("trusted", "")
	for _, tc := range []struct {
		agent            agents.Agent
		tool, parameters string
		approved         bool
		reason           string
	}{
		{plain, "read_database", `{}`, true, ""},
		{plain, "query_data", `{}`, true, ""},
		{plain, "search_web", ``, true, ""},
		{plain, "send_email", `{}`, true, ""},
		{plain, "log_message", `{}`, true, ""},
		{plain, "get_weather", `{}`, true, ""},
		{plain, "delete_database", `{}`, false, "Dangerous operation 'delete_database' requires manual approval"},
		{plain, "my_custom_tool", `{"x": "database"}`, false,
			"Unknown tool 'my_custom_tool' requires explicit allowlisting (risk_score=0.2)"},
		{plain, "my_custom_tool", `{}`, false,
			"Unknown tool 'my_custom_tool' requires explicit allowlisting (risk_score=0.0)"},
		{plain, "delete_archive", `{"a": "database", "b": "ADMIN"}`, false,
			"Unknown tool 'delete_archive' requires explicit allowlisting (risk_score=0.9)"},
		{plain, "drop_and_delete", `{"a": "database"}`, false,
			"Unknown tool 'drop_and_delete' requires explicit allowlisting (risk_score=1.0)"},
		{plain, "get_we\u0430ther", `{}`, false,
			"Unknown tool 'get_we\u0430ther' requires explicit allowlisting (risk_score=0.0)"},
		{custom, "my_custom_tool", `{}`, true, ""},
		{custom, "send_email", `{}`, false, "Tool 'send_email' is blocked for this agent"},
		{custom, "send_money", `{}`, false, "Dangerous operation 'send_money' requires manual approval"},
	} {
		r, err := o.tool(tc.agent.ID, tc.tool, json.RawMessage(tc.parameters))
		if err != nil || r.Approved != tc.approved || r.BlockedReason != tc.reason {
			t.Errorf("%s %s: %+v, %v", tc.tool, tc.parameters, r, err)
		}
	}
}

// a person approves a dangerous call, once.
func TestADangerousToolAfterAPerson(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("trusted", "")
	ask := func(parameters string) toolRuling {
		r, err := o.tool(a.ID, "drop_table", json.RawMessage(parameters))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := ask(`{"name": "users", "approved": true}`)
	if first.Approved || first.ApprovalID == "" {
		t.Fatalf("%+v", first)
	}
	o.next().answer <- approval.Verdict{Answer: approval.Yes, By: "ann"}
	r := ask(`{"approved": true, "name": "users"}`)
	for r.ApprovalID == first.ApprovalID {
		r = ask(`{"approved": true, "name": "users"}`)
	}
	if !r.Approved {
		t.Errorf("after the approval: %+v", r)
	}
	if other := ask(`{"name": "orders"}`); other.Approved {
		t.Error("another table was approved too")
	}
	if again := ask(`{"name": "users", "approved": true}`); again.Approved || again.ApprovalID == "" {
		t.Errorf("a second time: %+v, want a new question", again)
	}
}

// IDs and tokens.
func TestTokens(t *testing.T) {
	o := newOffice(t)
	a, token := o.register("supervised", "")
	if !regexp.MustCompile(`^agent_[0-9a-z]+$`).MatchString(a.ID) ||
		!regexp.MustCompile(`^qwed_agent_[0-9a-f]{64}$`).MatchString(token.Reveal()) {
		t.Errorf("%s %s", a.ID, token.Reveal())
	}
	valid := func(token secret.Value) bool {
		found, err := o.Authenticate(t.Context(), token)
		if err != nil && !errors.Is(err, agents.ErrToken) {
			t.Fatal(err)
		}
		return err == nil && found.ID == a.ID
	}
	if !valid(token) {
		t.Error("its token is not valid")
	}
	for _, wrong := range []string{"", "qwed_agent_", token.Reveal()[:70] + "00000", token.Reveal() + "0",
		strings.ToUpper(token.Reveal()), "' OR 1 = 1 --"} {
		if valid(secret.New(wrong)) {
			t.Errorf("%q is valid", wrong)
		}
	}
	next, err := o.Rotate(t.Context(), a.ID, "ann", nil)
	if err != nil || valid(token) || !valid(next) {
		t.Errorf("after a rotation: %v", err)
	}
	if err := o.SetStatus(t.Context(), a.ID, agents.Suspended, "ann"); err != nil || !valid(next) {
		t.Errorf("a suspended agent is told that it is: %v", err)
	}
	if got := o.try(a, action("calculate", "1"), step(1)); got != "DENIED "+admission.CodePolicy {
		t.Errorf("suspended: %s", got)
	}
	if err := o.SetStatus(t.Context(), a.ID, agents.Killed, "ann"); err != nil || valid(next) {
		t.Errorf("a killed agent has a valid token: %v", err)
	}
	if err := o.SetStatus(t.Context(), a.ID, agents.Active, "ann"); err == nil {
		t.Error("a killed agent came back")
	}
}

// registrations.
func TestRegistrations(t *testing.T) {
	for raw, want := range map[string]string{
		`{"name": "a", "type": "autonomous", "principal_id": "u"}`: "",
		`{"name": "a", "type": "root", "principal_id": "u"}`:       "type",
		`{"name": "", "type": "trusted", "principal_id": "u"}`:     "name",
		`{"name": "a", "type": "trusted"}`:                         "principal_id",
		`{"name": "a", "type": "trusted", "principal_id": "u", "permissions": {"allowed_engines": ` +
			`["mth"]}}`: `did you mean "math"`,
		`{"name": "a", "type": "trusted", "principal_id": "u", "permissions": {"allow": []}}`:         "allow",
		`{"name": "a", "type": "trusted", "principal_id": "u", "budget": {"max_daily_cost_usd": -1}}`: "",
		`{"name": "a", "type": "trusted", "principal_id": "u", "budget": ` +
			`{"max_requests_per_hour": -1}}`: "max_requests_per_hour",
		`{"name": "a", "type": "trusted", "principal_id": "u", "trust_level": 3}`: "trust_level",
		`{"name": "a\u0007", "type": "trusted", "principal_id": "u"}`:             "control",
	} {
		_, err := agents.ParseRegistration([]byte(raw))
		if want == "" && strings.Contains(raw, "-1") {
			if err == nil {
				t.Errorf("%s was accepted", raw)
			}
			continue
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

// the activity is a view of the audit log.
func TestActivity(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	other, _ := o.register("supervised", "")
	o.try(a, action("calculate", "1"), step(1))
	o.try(other, action("calculate", "1"), step(1))
	o.try(a, action("send_email", "x"), step(2))
	o.try(a, action("execute_code", "x"), step(3))
	o.try(a, action("calculate", "1"), `{}`)
	entries, err := agents.Activity(o.logDir, a.ID, audit.Period{}, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, strings.TrimSpace(e.ActionType+" "+e.Decision+" "+e.ErrorCode))
		if _, err := time.Parse(time.RFC3339Nano, e.Timestamp); err != nil {
			t.Error(err)
		}
	}
	want := []string{"DENIED QWED-AGENT-CTX-001", "execute_code DENIED QWED-AGENT-POLICY-001", "send_email PENDING",
		"calculate APPROVED"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	if newest, err := agents.Activity(o.logDir, a.ID, audit.Period{}, 0, 1); err != nil || len(newest) != 1 ||
		newest[0].ErrorCode != "QWED-AGENT-CTX-001" {
		t.Errorf("%v, %v", newest, err)
	}
}

// if the limiter fails, the request is denied.
func TestALimiterThatCannotTellDenies(t *testing.T) {
	for want, failure := range map[string]error{
		"APPROVED":                            nil,
		"DENIED " + admission.CodeRate:        admission.ErrTooOften,
		"DENIED " + admission.CodeRateUnknown: errors.New("connection refused"),
	} {
		o := newOffice(t, func(opts *options) { opts.Limiter = fixedLimiter{failure} })
		a, _ := o.register("trusted", "")
		if got := o.try(a, action("calculate", "1"), step(1)); got != want {
			t.Errorf("%v: %s, want %s", failure, got, want)
		}
	}
}

type fixedLimiter struct{ err error }

func (l fixedLimiter) Allow(context.Context, string) error { return l.err }
