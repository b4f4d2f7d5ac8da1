package admission_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// run returns a run of code; call returns a call of a tool that policies declare read-only.
func run(a agents.Agent, code string) admission.Act {
	return admission.Act{Kind: admission.Run, Agent: a.ID, Conversation: "ses_1", Arguments: arguments("code", code),
		RunID: "run_1"}
}

func call(a agents.Agent, tool, path string) admission.Act {
	return admission.Act{
		Kind: admission.Call, Agent: a.ID, Conversation: "ses_1", Arguments: arguments("path", path),
		Usage: admission.Usage{Limits: admission.DefaultLimits()},
		Request: &policies.Request{Tool: catalog.Tool{ServerID: "files", Name: tool},
			Settings: policies.Settings{Risk: policies.RiskLow}},
	}
}

func arguments(name, value string) json.RawMessage {
	raw, err := json.Marshal(map[string]string{name: value})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return raw
}

func (o *office) act(act admission.Act) (string, *admission.Grant) {
	o.Helper()
	r, grant, err := o.acts.Decide(o.Context(), act)
	if err != nil {
		o.Fatal(err)
	}
	if permitted := grant != nil; permitted != (r.Error == nil) {
		o.Errorf("%+v has a grant: %t", r, permitted)
	}
	return word(r), grant
}

func (o *office) spent(a agents.Agent) budget.Spent {
	o.Helper()
	standing, err := o.Budget(o.Context(), a.ID)
	if err != nil {
		o.Fatal(err)
	}
	return standing.Day
}

// one matrix decides announced and real acts.
func TestTheMatrixHoldsForCalls(t *testing.T) {
	o := newOffice(t)
	risks := []policies.Risk{policies.RiskLow, policies.RiskHigh, policies.RiskUnknown, policies.RiskCritical}
	for kind, want := range map[string][]string{
		"untrusted":  {"PENDING", "DENIED", "DENIED", "DENIED"},
		"supervised": {"APPROVED", "DENIED", "DENIED", "DENIED"},
		"autonomous": {"APPROVED", "PENDING", "PENDING", "DENIED"},
		"trusted":    {"APPROVED", "APPROVED", "APPROVED", "APPROVED"},
	} {
		a, _ := o.register(kind, `, "permissions": {"allowed_tools": ["files/touch"]}`)
		for i, risk := range risks {
			act := call(a, "touch", fmt.Sprint(i))
			act.Request.Settings.Risk = risk
			if got, _ := o.act(act); got != want[i] && !strings.HasPrefix(got, want[i]+" QWED-AGENT-POLICY-001") {
				t.Errorf("%s, a tool of the risk %s: %s, want %s", kind, risk, got, want[i])
			}
		}
	}
}

// T7: a tool must be allowed and its risk permitted. Names are compared byte
// for byte.
func TestPermissionsHoldForCalls(t *testing.T) {
	o := newOffice(t)
	const denied = "DENIED QWED-AGENT-POLICY-001"
	for _, c := range []struct {
		name, permissions, tool, path string
		want                          string
	}{
		{"a tool that was not allowed", `{}`, "fetch_report", "", denied},
		{"allowed by its exact name", `{"allowed_tools": ["files/fetch_report"]}`, "fetch_report", "", "APPROVED"},
		{"allowed by its name on any server", `{"allowed_tools": ["fetch_report"]}`, "fetch_report", "", "APPROVED"},
		{"all of a server", `{"allowed_tools": ["files/*"]}`, "fetch_report", "", "APPROVED"},
		{"of another server", `{"allowed_tools": ["mail/fetch_report", "mail/*"]}`, "fetch_report", "", denied},
		{"a look-alike with a Cyrillic letter", `{"allowed_tools": ["fetch_report"]}`, "fetch_r\u0435port", "", denied},
		{"with another case", `{"allowed_tools": ["fetch_report"]}`, "Fetch_Report", "", denied},
		{"safe", `{}`, "get_weather", "", "APPROVED"},
		{"safe, but blocked", `{"blocked_tools": ["files/get_weather"]}`, "get_weather", "", denied},
		{"blocked stands above allowed", `{"allowed_tools": ["fetch_report"], "blocked_tools": ["files/*"]}`,
			"fetch_report", "", denied},
		{"dangerous by its name", `{"allowed_tools": ["drop_table"]}`, "drop_table", "", denied},
		{"what its arguments would drop", `{"allowed_tools": ["fetch_report"]}`, "fetch_report", "DROP TABLE users",
			denied},
		{"an engine that is not allowed", `{"allowed_engines": ["math"]}`, "query_data", "", denied},
	} {
		a, _ := o.register("autonomous", `, "permissions": `+c.permissions)
		if got, _ := o.act(call(a, c.tool, c.path)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	a, _ := o.register("supervised", "")
	r, _, err := o.acts.Decide(t.Context(), call(a, "delete_archive", "database admin"))
	if want := "Unknown tool 'files/delete_archive' requires explicit allowlisting (risk_score=0.9)"; err != nil ||
		r.Error.Message != want {
		t.Errorf("A-043: %v, %v, want %q", r.Error, err, want)
	}
}

// The risk of SQL is that of its statements, regardless of the claims of the tool.
func TestStatementsOfCallsAreRead(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	for sql, want := range map[string]string{
		"SELECT 1":             "APPROVED",
		"UPDATE t SET a = 1":   "DENIED QWED-AGENT-POLICY-001",
		"DELETE FROM t":        "DENIED QWED-AGENT-POLICY-001",
		"SELECT 1; DROP TABLE": "DENIED QWED-AGENT-POLICY-001",
	} {
		act := call(a, "read_database", "")
		act.Arguments = arguments("sql", sql)
		if got, _ := o.act(act); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

// an agent that must not execute code cannot run code here either.
func TestWhoRunsNoCode(t *testing.T) {
	o := newOffice(t)
	for permissions, want := range map[string]string{
		`{}`:                                  "APPROVED",
		`{"blocked_tools": ["execute_code"]}`: "DENIED QWED-AGENT-POLICY-001",
		`{"blocked_tools": ["run_code"]}`:     "DENIED QWED-AGENT-POLICY-001",
		`{"allowed_engines": ["math"]}`:       "DENIED QWED-AGENT-POLICY-001",
		`{"allowed_engines": ["code"]}`:       "APPROVED",
	} {
		a, _ := o.register("trusted", `, "permissions": `+permissions)
		if got, _ := o.act(run(a, "result = 1")); got != want {
			t.Errorf("%s: %s, want %s", permissions, got, want)
		}
	}
}

// the steps of a conversation are its runs and direct calls. Calls made by code are
// counted as repetitions separately and take no step.
func TestLoopsHoldForRunsAndCalls(t *testing.T) {
	o := newOffice(t, func(opts *options) { opts.Limiter = nil })
	a, _ := o.register("supervised", "")
	for i, want := range []string{"APPROVED", "APPROVED", "DENIED QWED-AGENT-LOOP-003"} {
		if got, _ := o.act(run(a, "result = 1")); got != want {
			t.Errorf("run %d: %s, want %s", i+1, got, want)
		}
	}
	nested := call(a, "get_weather", "Bern")
	nested.Nested = true
	for i, want := range []string{"APPROVED", "APPROVED", "DENIED QWED-AGENT-LOOP-003"} {
		if got, _ := o.act(nested); got != want {
			t.Errorf("call %d of code: %s, want %s", i+1, got, want)
		}
	}
	for i := range 60 { // more than the maximum number of steps
		nested.Arguments = arguments("path", fmt.Sprint(i))
		if got, _ := o.act(nested); got != "APPROVED" {
			t.Fatalf("call %d: %s", i, got)
		}
	}
	for i := 3; i <= 50; i++ {
		if got, _ := o.act(run(a, fmt.Sprint(i))); got != "APPROVED" {
			t.Fatalf("run %d: %s", i, got)
		}
	}
	if got, _ := o.act(run(a, "the next")); got != "DENIED QWED-AGENT-LOOP-001" {
		t.Errorf("run 51: %s", got)
	}
	if r, _, err := o.acts.Decide(t.Context(), run(a, "the next")); err != nil ||
		!strings.Contains(r.Error.Message, "connect again") {
		t.Errorf("what to do instead is not said: %+v, %v", r.Error, err)
	}
	o.clock.Advance(29 * time.Minute)
	if got, _ := o.act(run(a, "the next")); got != "DENIED QWED-AGENT-LOOP-001" {
		t.Errorf("after a while: %s", got)
	}
	o.clock.Advance(time.Minute)
	if got, _ := o.act(run(a, "the next")); got != "APPROVED" {
		t.Errorf("once the session was silent for half an hour: %s", got)
	}
	other := run(a, "the next")
	other.Conversation = "ses_2"
	if got, _ := o.act(other); got != "APPROVED" {
		t.Errorf("in another conversation: %s", got)
	}
}

// the host's step description applies to its calls too, and the conversation
// is the one of announced actions.
func TestTheHostsContextCounts(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	at := func(act admission.Act, context string) string {
		act.Context = json.RawMessage(context)
		got, _ := o.act(act)
		return got
	}
	state := fmt.Sprintf(`"pre_action_state_hash": %q, "state_source": "git_tree"`, strings.Repeat("ab", 32))
	for _, c := range []struct {
		name, got, want string
	}{
		{"announced", o.try(a, action("calculate", "1"), step(1)), "APPROVED"},
		{"the same step, done", at(run(a, "a"), step(1)), "DENIED QWED-AGENT-LOOP-002"},
		{"the next step", at(run(a, "a"), step(2)), "APPROVED"},
		{"announced at that step", o.try(a, action("calculate", "2"), step(2)), "DENIED QWED-AGENT-LOOP-002"},
		{"no step is the next one", at(run(a, "b"), `{"conversation_id": "conv_1"}`), "APPROVED"},
		{"which is taken then", at(run(a, "c"), step(3)), "DENIED QWED-AGENT-LOOP-002"},
		{"a state", at(run(a, "x"), `{`+state+`}`), "APPROVED"},
		{"something else on it", at(run(a, "y"), `{`+state+`}`), "APPROVED"},
		{"the same on it", at(run(a, "x"), `{`+state+`}`), "APPROVED"},
		{"something else again", at(run(a, "y"), `{`+state+`}`), "APPROVED"},
		{"the same on it a third time", at(run(a, "x"), `{`+state+`}`), "DENIED QWED-AGENT-LOOP-004"},
		{"half a state", at(run(a, "z"), `{"state_source": "custom"}`), "DENIED QWED-AGENT-STATE-001"},
		{"a step that is none", at(run(a, "z"), `{"step_number": "1"}`), "DENIED QWED-AGENT-CTX-002"},
		{"step 0", at(run(a, "z"), `{"step_number": 0}`), "DENIED QWED-AGENT-CTX-002"},
		{"step 2^63", at(run(a, "z"), `{"step_number": 9223372036854775808}`), "DENIED QWED-AGENT-CTX-002"},
		{"another member", at(run(a, "z"), `{"step": 1}`), "DENIED QWED-AGENT-CTX-003"},
		{"no object", at(run(a, "z"), `[]`), "DENIED QWED-AGENT-CTX-003"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

// if each action needs a state, so does each run and each direct call.
func TestRequiredStateHoldsForRuns(t *testing.T) {
	o := newOffice(t, func(opts *options) { opts.RequireState = true })
	a, _ := o.register("trusted", "")
	if got, _ := o.act(run(a, "a")); got != "DENIED QWED-AGENT-STATE-004" {
		t.Error(got)
	}
}

// Real tools are called with numbers that RFC 8785 cannot represent. They are accepted, and calls
// that differ in them are different.
func TestLongNumbersDiffer(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	for i := range 5 {
		act := call(a, "get_weather", "")
		act.Arguments = json.RawMessage(fmt.Sprintf(`{"id": 9007199254740993%d, "depth": [1e400]}`, i))
		if got, _ := o.act(act); got != "APPROVED" {
			t.Errorf("call %d: %s", i, got)
		}
	}
	for i, arguments := range []string{`{"a": 1, "b": 2}`, `{"b": 2.0, "a": 1e0}`, `{ "b": 2, "a": 1 }`} {
		act := call(a, "get_weather", "")
		act.Arguments = json.RawMessage(arguments)
		if got, _ := o.act(act); (got == "DENIED QWED-AGENT-LOOP-003") != (i == 2) {
			t.Errorf("A-029, %s: %s", arguments, got)
		}
	}
}

// acts that do not happen are not debited.
func TestWhatIsDebitedIsWhatHappens(t *testing.T) {
	o := newOffice(t, func(opts *options) {
		opts.Prices = admission.Prices{Actions: map[string]budget.Amount{
			"files/get_weather": budget.USD, "get_weather": 2 * budget.USD, admission.RunCode: 3 * budget.USD,
		}, Default: 4 * budget.USD, Second: budget.USD / 10}
	})
	a, _ := o.register("supervised", `, "budget": {"max_daily_cost_usd": 100}`)
	expect := func(what string, dollars budget.Amount, requests int64) {
		t.Helper()
		if s := o.spent(a); s.Cost != dollars || s.Requests != requests {
			t.Errorf("%s: %s USD, %d requests, want %s and %d", what, s.Cost, s.Requests, dollars, requests)
		}
	}
	_, g := o.act(call(a, "get_weather", "1"))
	expect("a call by its exact name", budget.USD, 1)
	end(t, g, true, 0)
	end(t, g, true, 0)
	expect("once it was made", budget.USD, 1)
	_, g = o.act(call(a, "get_weather", "2"))
	end(t, g, false, 0)
	end(t, g, false, 0)
	expect("a call that was not made", budget.USD, 2)

	long := run(a, "x")
	long.Longest = 30 * time.Second
	_, g = o.act(long)
	expect("a run is debited for its whole time", 7*budget.USD, 3)
	o.clock.Advance(13 * time.Hour) // the next day
	end(t, g, true, 1500*time.Millisecond)
	expect("the next day", 0, 0)
	o.clock.Advance(-13 * time.Hour)
	expect("and gets the rest back on the day of the debit", 4*budget.USD+budget.USD*15/100, 3)
	o.costsOfRecords(a, 4*budget.USD+budget.USD*15/100)

	poor, _ := o.register("supervised", `, "budget": {"max_daily_cost_usd": 4}`)
	long.Agent = poor.ID
	if got, _ := o.act(long); got != "BUDGET_EXCEEDED QWED-AGENT-BUDGET-001" {
		t.Error(got)
	}
	if s := o.spent(poor); s.Cost != 0 {
		t.Errorf("a run that cannot be paid costs %s", s.Cost)
	}
}

func end(t *testing.T, g *admission.Grant, done bool, kept time.Duration) {
	t.Helper()
	if err := g.End(t.Context(), done, kept); err != nil {
		t.Error(err)
	}
}

// costsOfRecords compares the sum of an agent's debits in the audit log with want.
func (o *office) costsOfRecords(a agents.Agent, want budget.Amount) {
	o.Helper()
	var sum budget.Amount
	err := audit.Tail(o.Context(), o.logDir, 1000, false, func(r audit.Record) error {
		text, returned := strings.CutPrefix(r.CostUSD, "-")
		if r.Kind != audit.KindAction || r.Principal != a.ID || text == "" {
			return nil
		}
		cost, err := budget.ParseAmount(text)
		if returned {
			cost = -cost
		}
		sum += cost
		return err
	})
	if err != nil {
		o.Fatal(err)
	}
	if sum != want {
		o.Errorf("the records say %s USD, want %s", sum, want)
	}
}

// T45: an act that needs approval is debited once, when a person approves it. In the
// meantime the agent may have been suspended, its money spent or its step taken.
func TestApprovalDecidesAgain(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(o *office, a agents.Agent)
		want      string
		cost      budget.Amount
	}{
		"nothing happened": {func(*office, agents.Agent) {}, "APPROVED", budget.USD},
		"it was suspended": {func(o *office, a agents.Agent) { o.status(a, agents.Suspended) },
			"DENIED QWED-AGENT-POLICY-001", 0},
		"its step is taken": {func(o *office, a agents.Agent) { o.try(a, action("calculate", "1"), step(1)) },
			"DENIED QWED-AGENT-LOOP-002", budget.USD},
		"its money is gone": {func(o *office, a agents.Agent) {
			o.try(a, action("calculate", "1"), `{"conversation_id": "other", "step_number": 1}`)
		}, "BUDGET_EXCEEDED QWED-AGENT-BUDGET-001", budget.USD},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, func(opts *options) { opts.Prices.Default = budget.USD })
			a, _ := o.register("autonomous",
				`, "permissions": {"allowed_tools": ["touch"]}, "budget": {"max_daily_cost_usd": 1}`)
			act := call(a, "touch", "")
			act.Request.Settings.Risk, act.Context = policies.RiskHigh, json.RawMessage(step(1))
			got, g := o.act(act)
			if s := o.spent(a); got != "PENDING" || s.Cost != 0 || s.Requests != 1 {
				t.Fatalf("%s, %+v", got, s)
			}
			c.meanwhile(o, a)
			d, err := g.Approve(t.Context(), "ann, console")
			if err != nil || word(d) != c.want || d.Approver != "ann, console" {
				t.Errorf("%+v, %v, want %s", d, err, c.want)
			}
			if s := o.spent(a); s.Cost != c.cost {
				t.Errorf("%s USD, want %s", s.Cost, c.cost)
			}
			end(t, g, true, 0)
		})
	}
}

func (o *office) status(a agents.Agent, status agents.Status) {
	o.Helper()
	if err := o.SetStatus(o.Context(), a.ID, status, "ann"); err != nil {
		o.Fatal(err)
	}
}

// Refusals and required approvals of other rules apply to agents too. A refusal still counts as a
// request.
func TestOtherRulesHoldAsWell(t *testing.T) {
	o := newOffice(t, func(opts *options) {
		opts.Rules.Policies = rules(t, `@approve("owner") permit (principal, action, resource);
			forbid (principal, action, resource) when { resource.denied };`)
	})
	a, _ := o.register("trusted", "")
	act := call(a, "get_weather", "")
	if got, _ := o.act(act); got != "PENDING" {
		t.Error(got)
	}
	act.Request.Settings.Denied = true
	if got, _ := o.act(act); got != "DENIED QWED-AGENT-POLICY-001" {
		t.Error(got)
	}
	if s := o.spent(a); s.Requests != 2 {
		t.Errorf("%d requests", s.Requests)
	}
	if entries, err := agents.Activity(o.logDir, a.ID, audit.Period{}, 0, 10); err != nil || len(entries) != 2 ||
		entries[0].Decision != "DENIED" || entries[0].ServerID != "files" {
		t.Errorf("A-055: %+v, %v", entries, err)
	}
}

// an unknown or suspended agent cannot act.
func TestWhoMayNotAct(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("trusted", "")
	for _, status := range []agents.Status{agents.Suspended, agents.Killed} {
		o.status(a, status)
		for _, act := range []admission.Act{run(a, "a"), call(a, "get_weather", "")} {
			if got, _ := o.act(act); got != "DENIED QWED-AGENT-POLICY-001" {
				t.Errorf("%s: %s", status, got)
			}
		}
	}
	if r, grant, err := o.acts.Decide(t.Context(),
		admission.Act{Agent: "agent_none", Kind: admission.Run}); err == nil || grant != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
