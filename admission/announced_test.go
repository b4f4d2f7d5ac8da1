package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/policies"
)

// office is a service with a real database and a real audit log. The test controls its clock and
// its person.
type office struct {
	*testing.T
	*agents.Service
	acts   *admission.Service
	opts   options
	end    func()
	logDir string
	person *person
	clock  *testenv.Clock
}

// options are the options of an office.
type options struct {
	admission.AgentOptions
	Rules admission.Rules
	Log   *audit.Log
	Now   func() time.Time
}

// person answers questions when the test sends an answer.
type person struct{ questions chan asked }

type asked struct {
	question approval.Question
	answer   chan approval.Verdict
}

// Reserve and Open pass questions to the person, whose queue has no limit.
func (p *person) Reserve(string) (approval.Reservation, error) { return p, nil }

func (p *person) Open(q approval.Question) (func(context.Context) (approval.Verdict, error), error) {
	return func(ctx context.Context) (approval.Verdict, error) { return p.Ask(ctx, q) }, nil
}

func (p *person) Release() {}

func (p *person) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	a := asked{q, make(chan approval.Verdict, 1)}
	select {
	case p.questions <- a:
	case <-ctx.Done():
		return approval.Verdict{}, ctx.Err()
	}
	select {
	case v := <-a.answer:
		return v, nil
	case <-ctx.Done():
	}
	select {
	case v := <-a.answer: // given before ctx ended
		return v, nil
	default:
		return approval.Verdict{}, ctx.Err()
	}
}

func newOffice(t *testing.T, change ...func(*options)) *office {
	t.Helper()
	return newOfficeWith(t, nil, change...)
}

// newOfficeWith is newOffice with limits for each principal and session.
func newOfficeWith(t *testing.T, budgets map[string]budget.Limits, change ...func(*options)) *office {
	dir := t.TempDir()
	o := &office{T: t, logDir: filepath.Join(dir, "audit"), person: &person{make(chan asked, 100)},
		clock: testenv.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	log, err := audit.Open(o.logDir, nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := databasetest.Open(t.Context(), filepath.Join(dir, "agents.db"), agents.Schema, agents.SchemaInherited,
		agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits)
	if err != nil {
		t.Fatal(err)
	}
	o.Service = agents.New(agents.Options{Database: db, Log: log, Now: o.clock.Now, Budgets: budgets})
	opts := options{admission.AgentOptions{Agents: o.Service, Database: db, Desk: o.person}, admission.Rules{}, log,
		o.clock.Now}
	opts.Rules.Policies = rules(t, "permit (principal, action, resource);")
	for _, c := range change {
		c(&opts)
	}
	o.opts = opts
	o.begin()
	t.Cleanup(func() {
		o.end()
		if err := errors.Join(db.Close(), log.Close()); err != nil {
			t.Error(err)
		}
	})
	return o
}

// rules returns an engine with one file of policies.
func rules(t testing.TB, source string) *policies.Engine {
	t.Helper()
	engine, err := policies.Load(policies.File{Name: "test.cedar", Source: []byte(source)})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func (o *office) begin() {
	o.Helper()
	var err error
	if o.acts, err = admission.New(admission.Options{Rules: o.opts.Rules, Log: o.opts.Log,
		Now: o.opts.Now}); err != nil {
		o.Fatal(err)
	}
	if o.end, err = o.acts.OpenAgents(o.opts.AgentOptions); err != nil {
		o.Fatal(err)
	}
}

// restart closes the service after people's answers are stored, and opens it again.
func (o *office) restart() {
	o.Helper()
	o.end()
	o.begin()
}

// register adds an agent of a type; more is JSON of further members.
func (o *office) register(kind string, more string) (agents.Agent, secret.Value) {
	o.Helper()
	raw := fmt.Sprintf(`{"name": "DataAnalyst", "type": %q, "principal_id": "user_123"%s}`, kind, more)
	r, err := agents.ParseRegistration([]byte(raw))
	if err != nil {
		o.Fatal(err)
	}
	a, token, err := o.Register(o.Context(), r, "ann")
	if err != nil {
		o.Fatal(err)
	}
	return a, token
}

// try announces an action and returns the decision with the code of its error:
// "DENIED QWED-AGENT-LOOP-002".
func (o *office) try(agent agents.Agent, action, context string) string {
	o.Helper()
	return word(o.verify(agent, action, context))
}

func word(r admission.Ruling) string {
	if r.Error == nil {
		return r.Decision
	}
	return r.Decision + " " + r.Error.Code
}

// toolRuling is a ruling on an announced tool in the words of the API.
type toolRuling struct {
	Approved      bool
	BlockedReason string
	ApprovalID    string
	Retryable     bool
}

// tool announces the call of a tool.
func (o *office) tool(agent, tool string, parameters json.RawMessage) (toolRuling, error) {
	r, _, err := o.acts.Decide(o.Context(),
		admission.Act{Kind: admission.AnnouncedTool, Agent: agent, Name: tool, Arguments: parameters})
	t := toolRuling{Approved: r.Decision == admission.Approved, BlockedReason: r.Reason, ApprovalID: r.ApprovalID}
	if r.Error != nil {
		t.BlockedReason, t.Retryable = r.Error.Message, r.Error.Retryable
		if r.Error.Reason == admission.Malformed {
			err = r.Error
		}
	}
	return t, err
}

func (o *office) verify(agent agents.Agent, action, context string) admission.Ruling {
	o.Helper()
	d, _, err := o.acts.Decide(o.Context(), announced(agent.ID, action, context))
	if err != nil {
		o.Fatal(err)
	}
	return d
}

func announced(agent, action, context string) admission.Act {
	return admission.Act{Kind: admission.AnnouncedAction, Agent: agent, Arguments: json.RawMessage(action),
		Context: json.RawMessage(context)}
}

// step is the context of a step; more is JSON of further members.
func step(n int, more ...string) string {
	return fmt.Sprintf(`{"conversation_id": "conv_1", "step_number": %d%s}`, n, strings.Join(more, ""))
}

func action(kind, query string) string { return fmt.Sprintf(`{"type": %q, "query": %q}`, kind, query) }

// the document's own example.
func TestTheDocumentsConversation(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	for _, turn := range []struct {
		action string
		step   int
		want   string
	}{
		{action("calculate", "2+2"), 1, "APPROVED"},
		{action("calculate", "2+2"), 1, "DENIED QWED-AGENT-LOOP-002"},
		{action("calculate", "2+2"), 2, "APPROVED"},
		{action("calculate", "2+2"), 3, "DENIED QWED-AGENT-LOOP-003"},
		{action("verify_logic", "x > 1"), 3, "APPROVED"},
		{action("calculate", "2+2"), 2, "DENIED QWED-AGENT-LOOP-002"},
		{action("calculate", "2+2"), 9, "APPROVED"}, // gaps are allowed
		{action("calculate", "1"), 8, "DENIED QWED-AGENT-LOOP-002"},
	} {
		if got := o.try(a, turn.action, step(turn.step)); got != turn.want {
			t.Errorf("step %d, %s: %s, want %s", turn.step, turn.action, got, turn.want)
		}
	}
}

// required members of a context.
func TestContexts(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	state := func(hash, source string) string {
		return fmt.Sprintf(`, "pre_action_state_hash": %s, "state_source": %s`, hash, source)
	}
	tests := map[string]string{
		``:                   "DENIED QWED-AGENT-CTX-001",
		`{}`:                 "DENIED QWED-AGENT-CTX-001",
		`{"step_number": 1}`: "DENIED QWED-AGENT-CTX-001",
		`{"conversation_id": "", "step_number": 1}`:                    "DENIED QWED-AGENT-CTX-001",
		`{"conversation_id": "  ", "step_number": 1}`:                  "DENIED QWED-AGENT-CTX-001",
		`{"conversation_id": 7, "step_number": 1}`:                     "DENIED QWED-AGENT-CTX-001",
		`{"conversation_id": null, "step_number": 1}`:                  "DENIED QWED-AGENT-CTX-001",
		`{"conversation_id": "a\u0000b", "step_number": 1}`:            "DENIED QWED-AGENT-CTX-001",
		`{"conversation_id": "c"}`:                                     "DENIED QWED-AGENT-CTX-002",
		`{"conversation_id": "c", "step_number": 0}`:                   "DENIED QWED-AGENT-CTX-002",
		`{"conversation_id": "c", "step_number": -1}`:                  "DENIED QWED-AGENT-CTX-002",
		`{"conversation_id": "c", "step_number": "1"}`:                 "DENIED QWED-AGENT-CTX-002",
		`{"conversation_id": "c", "step_number": 1.5}`:                 "DENIED QWED-AGENT-CTX-002",
		`{"conversation_id": "c", "step_number": true}`:                "DENIED QWED-AGENT-CTX-002",
		`{"conversation_id": "c", "step_number": 9223372036854775808}`: "DENIED QWED-AGENT-CTX-002",
		`{"conversation_id": "c", "step_number": 1, "step_number": 2}`: "DENIED QWED-AGENT-CTX-003",
		`{"conversation_id": "c", "step_number": 1, "bypass": true}`:   "DENIED QWED-AGENT-CTX-003",
		`[]`: "DENIED QWED-AGENT-CTX-003",
		`{"conversation_id": "c", "step_number": NaN}`:            "DENIED QWED-AGENT-CTX-003",
		step(1, `, "user_intent": "list users"`):                  "APPROVED",
		step(1, state(`"`+hash+`"`, `null`)):                      "DENIED QWED-AGENT-STATE-001",
		step(1, `, "state_source": "custom"`):                     "DENIED QWED-AGENT-STATE-001",
		step(1, state(`"`+strings.ToUpper(hash)+`"`, `"custom"`)): "DENIED QWED-AGENT-STATE-002",
		step(1, state(`"`+hash[1:]+`"`, `"custom"`)):              "DENIED QWED-AGENT-STATE-002",
		step(1, state(`"`+hash+`0"`, `"custom"`)):                 "DENIED QWED-AGENT-STATE-002",
		step(1, state(`"`+hash+`\n"`, `"custom"`)):                "DENIED QWED-AGENT-STATE-002",
		step(1, state(`"`+hash[2:]+`zz"`, `"custom"`)):            "DENIED QWED-AGENT-STATE-002",
		step(1, state(`"`+hash+`"`, `"weather"`)):                 "DENIED QWED-AGENT-STATE-003",
	}
	for _, source := range []string{"file_tree", "db_snapshot", "conversation_digest", "git_tree", "custom"} {
		tests[step(1, state(`"`+hash+`"`, `"`+source+`"`))] = "APPROVED"
	}
	o := newOffice(t)
	for context, want := range tests {
		a, _ := o.register("supervised", "") // in a new conversation
		if got := o.try(a, action("calculate", "1"), context); got != want {
			t.Errorf("%s: %s, want %s", context, got, want)
		}
	}
}

// trust does not lift the limits of a conversation.
func TestTrustedAgentsMeetTheSameLimits(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("trusted", "")
	for _, turn := range []struct {
		step int
		want string
	}{{1, "APPROVED"}, {1, "DENIED QWED-AGENT-LOOP-002"}, {2, "APPROVED"}, {3, "DENIED QWED-AGENT-LOOP-003"}} {
		if got := o.try(a, action("execute_code", "x"), step(turn.step)); got != turn.want {
			t.Errorf("step %d: %s, want %s", turn.step, got, turn.want)
		}
	}
}

// a service that requires the state before each action.
func TestTheStateCanBeRequired(t *testing.T) {
	o := newOffice(t, func(opts *options) { opts.RequireState = true })
	a, _ := o.register("trusted", "")
	if got := o.try(a, action("calculate", "1"), step(1)); got != "DENIED "+admission.CodeStateMissing {
		t.Errorf("without a state: %s", got)
	}
	if got := o.try(a, action("calculate", "1"), step(1, unchanged)); got != "APPROVED" {
		t.Errorf("with a state: %s", got)
	}
}

// the fields of an action, and invalid actions.
func TestActions(t *testing.T) {
	o := newOffice(t)
	for action, want := range map[string]string{
		`{"type": "calculate", "query": "1", "code": "x", "target": "t", "parameters": {"a": 1}}`: "APPROVED",
		`{"type": "calculate"}`: "APPROVED",
		`{"type": "calculate", "parameters": {"big": 9007199254740993}}`: "DENIED QWED-AGENT-ACTION-002",
		`{"type": "calculate", "parameters": [1]}`:                       "DENIED QWED-AGENT-ACTION-002",
		`{"type": "calculate", "query": 7}`:                              "DENIED QWED-AGENT-ACTION-002",
		`{"type": ""}`:                                                   "DENIED QWED-AGENT-ACTION-002",
		`{"query": "1"}`:                                                 "DENIED QWED-AGENT-ACTION-002",
		`{"type": "calculate", "approved": true}`:                        "DENIED QWED-AGENT-ACTION-002",
		``:                           "DENIED QWED-AGENT-ACTION-002",
		`{"type": "teleport"}`:       "DENIED QWED-AGENT-ACTION-001",
		`{"type": "re\u0430d_file"}`: "DENIED QWED-AGENT-ACTION-001", // a Cyrillic letter
		`{"type": "READ_FILE"}`:      "DENIED QWED-AGENT-ACTION-001",
		`{"type": "read_file\n"}`:    "DENIED QWED-AGENT-ACTION-001",
	} {
		a, _ := o.register("trusted", "")
		if got := o.try(a, action, step(1)); got != want {
			t.Errorf("%s: %s, want %s", action, got, want)
		}
	}
}

// 50 committed steps.
func TestAConversationHasFiftySteps(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	for n := 1; n <= 50; n++ {
		if got := o.try(a, action("calculate", fmt.Sprint(n)), step(n)); got != "APPROVED" {
			t.Fatalf("step %d: %s", n, got)
		}
	}
	if got := o.try(a, action("calculate", "51"), step(51)); got != "DENIED QWED-AGENT-LOOP-001" {
		t.Errorf("step 51: %s", got)
	}
	if got := o.try(a, action("calculate", "51"),
		`{"conversation_id": "conv_2", "step_number": 51}`); got != "APPROVED" {
		t.Errorf("a new conversation: %s", got)
	}
}

const unchanged = `, "state_source": "db_snapshot", "pre_action_state_hash": ` +
	`"0000000000000000000000000000000000000000000000000000000000000000"`

// repeated actions on one state, with others in between.
func TestNoProgress(t *testing.T) {
	const changed = `, "state_source": "db_snapshot", "pre_action_state_hash": ` +
		`"1111111111111111111111111111111111111111111111111111111111111111"`
	a1, b1 := action("calculate", "A"), action("calculate", "B")
	o := newOffice(t)
	a, _ := o.register("trusted", "")
	for n, act := range []string{a1, b1, a1, b1} {
		if got := o.try(a, act, step(n+1, unchanged)); got != "APPROVED" {
			t.Fatalf("step %d: %s", n+1, got)
		}
	}
	if got := o.try(a, a1, step(5, unchanged)); got != "DENIED QWED-AGENT-LOOP-004" {
		t.Errorf("the third time: %s", got)
	}
	if got := o.try(a, a1, step(5, changed)); got != "APPROVED" {
		t.Errorf("on another state: %s", got)
	}
	for n := range 20 {
		if got := o.try(a, action("calculate", fmt.Sprint(n)), step(6+n, unchanged)); got != "APPROVED" {
			t.Fatalf("in between: %s", got)
		}
	}
	if got := o.try(a, a1, step(26, unchanged)); got != "APPROVED" {
		t.Errorf("after twenty others: %s", got)
	}
}

// which actions are equal.
func TestFingerprints(t *testing.T) {
	same := []string{
		`{"type": "calculate", "parameters": {"a": 1, "b": [1, 2]}}`,
		`{"parameters": {"b": [1.0, 2e0], "a": 1}, "type": "calculate"}`,
		`{"type": "calculate", "parameters": {"\u0061": 1, "b": [1, 2]}, "query": ""}`,
		`{"type": "calculate", "parameters": {"a": 1, "b": [1, 2]}, "query": null}`,
	}
	fingerprint := func(raw string) string {
		a, err := admission.ParseAction([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		f, err := a.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, raw := range same[1:] {
		if fingerprint(raw) != fingerprint(same[0]) {
			t.Errorf("%s differs", raw)
		}
	}
	for _, raw := range []string{
		`{"type": "calculate", "parameters": {"a": 1, "b": [2, 1]}}`,
		`{"type": "calculate", "parameters": {"a": 1, "b": [1, 2]}, "target": "t"}`,
		`{"type": "calculate", "parameters": {"a": "1", "b": [1, 2]}}`,
		`{"type": "verify_math", "parameters": {"a": 1, "b": [1, 2]}}`,
	} {
		if fingerprint(raw) == fingerprint(same[0]) {
			t.Errorf("%s is the same", raw)
		}
	}
}

// of twenty claims to one step exactly one wins.
func TestOneClaimToAStepWins(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	got := make([]string, 20)
	var wait sync.WaitGroup
	for i := range got {
		wait.Go(func() { got[i] = o.try(a, action("calculate", fmt.Sprint(i)), step(1)) })
	}
	wait.Wait()
	won := 0
	for _, g := range got {
		switch g {
		case "APPROVED":
			won++
		case "DENIED QWED-AGENT-LOOP-002":
		default:
			t.Errorf("a claim got %s", g)
		}
	}
	if won != 1 {
		t.Errorf("%d claims won", won)
	}
}

// permissions, and the risk of SQL by its statements.
func TestPermissionsAndRisk(t *testing.T) {
	o := newOffice(t)
	for _, tc := range []struct{ kind, permissions, action, want string }{
		{"supervised", ``, action("execute_sql", "SELECT * FROM users"), "APPROVED"},
		{"supervised", ``, action("execute_sql", "INSERT INTO t VALUES (1)"), "DENIED QWED-AGENT-POLICY-001"},
		{"autonomous", ``, action("execute_sql", "UPDATE t SET a = 1 WHERE b = 2"), "PENDING"},
		{"autonomous", ``, action("execute_sql", "DROP TABLE users"), "DENIED QWED-AGENT-POLICY-001"},
		{"trusted", ``, action("execute_sql", "DROP TABLE users"), "APPROVED"},
		{"supervised", ``, action("read_file", "x'; DROP TABLE users; --"), "DENIED QWED-AGENT-POLICY-001"},
		{"supervised", ``, action("send_email", "hello"), "PENDING"},
		{"supervised", ``, action("execute_code", ""), "DENIED QWED-AGENT-POLICY-001"},
		{"trusted", `"blocked_tools": ["execute_code"]`, action("execute_code", ""), "DENIED QWED-AGENT-POLICY-001"},
		{"trusted", `"allowed_engines": ["math", "logic"]`, action("execute_sql", "SELECT 1"),
			"DENIED QWED-AGENT-POLICY-001"},
		{"trusted", `"allowed_engines": ["math", "sql"]`, action("execute_sql", "SELECT 1"), "APPROVED"},
		{"trusted", `"allowed_engines": []`, action("calculate", "1"), "DENIED QWED-AGENT-POLICY-001"},
		{"supervised", `"allowed_tools": ["fetch_report"]`, action("fetch_report", ""), "APPROVED"},
		{"supervised", `"allowed_tools": ["fetch_report"], "blocked_tools": ["fetch_report"]`,
			action("fetch_report", ""), "DENIED QWED-AGENT-POLICY-001"},
		{"untrusted", ``, action("read_file", ""), "PENDING"},
		{"trusted", ``, action("send_money", ""), "PENDING"},
	} {
		a, _ := o.register(tc.kind, fmt.Sprintf(`, "permissions": {%s}`, tc.permissions))
		if got := o.try(a, tc.action, step(1)); got != tc.want {
			t.Errorf("%s {%s} %s: %s, want %s", tc.kind, tc.permissions, tc.action, got, tc.want)
		}
	}
}

func BenchmarkVerifyAction(b *testing.B) {
	dir := b.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		b.Fatal(err)
	}
	db, err := databasetest.Open(b.Context(), filepath.Join(dir, "agents.db"), agents.Schema, agents.SchemaInherited,
		agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits)
	if err != nil {
		b.Fatal(err)
	}
	registry := agents.New(agents.Options{Database: db, Log: log})
	s, err := admission.New(admission.Options{Log: log})
	if err != nil {
		b.Fatal(err)
	}
	end, err := s.OpenAgents(admission.AgentOptions{Agents: registry, Database: db})
	if err != nil {
		b.Fatal(err)
	}
	many := int64(1 << 40)
	a, _, err := registry.Register(b.Context(), agents.Registration{
		Name: "a", Type: agents.Supervised, PrincipalID: "u", Budget: budget.Limits{HourRequests: &many},
	}, "ann")
	if err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	verify := func() {
		i := n.Add(1)
		context := fmt.Sprintf(`{"conversation_id": "c%d", "step_number": %d}`, i/50, i%50+1)
		if _, _, err := s.Decide(b.Context(), announced(
			a.ID, action("calculate", fmt.Sprint(i)), context)); err != nil {
			b.Error(err)
		}
	}
	b.Run("one at a time", func(b *testing.B) {
		for b.Loop() {
			verify()
		}
	})
	b.Run("together", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				verify()
			}
		})
	})
	end()
	if err := errors.Join(db.Close(), log.Close()); err != nil {
		b.Fatal(err)
	}
}
