package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
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
	db := officeDatabase(t, dir)
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

// officeDatabase opens the database of an office.
func officeDatabase(t *testing.T, dir string) *database.DB {
	t.Helper()
	db, err := databasetest.Open(t.Context(), filepath.Join(dir, "agents.db"), agents.Schema, agents.SchemaInherited,
		agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits,
		cluster.Schema+cluster.SchemaAddresses+cluster.SchemaLoads+cluster.SchemaHomes)
	if err != nil {
		t.Fatal(err)
	}
	return db
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
