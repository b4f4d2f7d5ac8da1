package broker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// Agents decides what callers of the kind Agent may do, beside what policies
// say to every caller. Decide may be called concurrently. Its error says that nothing
// could be decided, which permits nothing.
type Agents interface {
	// Decide decides about one run or one call, once, and debits it where no person is to be asked.
	Decide(ctx context.Context, act AgentAct) (AgentRuling, error)
}

// AgentAct is a run or a call that an agent is about to make.
type AgentAct struct {
	Run  Run
	Call *AgentCall // nil for a run
	// Longest is how long a run may keep its sandbox.
	Longest time.Duration
}

// AgentCall is the call of an AgentAct.
type AgentCall struct {
	ID             string // call_…
	ServerID, Name string
	Arguments      json.RawMessage
	Risk           policies.Risk   // of the tool
	Schema         json.RawMessage // the tool's input schema
	Nested         bool            // the call is made by code whose run was decided about
	Asks           bool            // policies want a person to approve it
	Refused        string          // why policies do not permit it; empty: they do
}

// AgentRuling is what was decided. The zero value permits nothing.
type AgentRuling struct {
	Refused *Error // what the code is told; nil when the act is permitted
	// Rules decided; those with an @approve also in Approve, who must agree before the act.
	Rules   []policies.Rule
	Approve []string
	Risk    policies.Risk // of the act; it is not below that of the tool
	Grant   AgentGrant    // set when the act is permitted
}

// AgentGrant is the permission for one act. Its methods are not called concurrently.
type AgentGrant interface {
	// Approve says that a person has approved the act, and who. What it returns is
	// why the act must not be done all the same, or nil.
	Approve(ctx context.Context, by string) (*Error, error)
	// End says whether the act was done, and how long a run kept its sandbox.
	// Calling it twice is fine.
	End(ctx context.Context, done bool, kept time.Duration) error
}

// decideAgent asks the rules about agents, where the caller is one.
func (a *attempt) decideAgent(ctx context.Context) *failure {
	who := a.run.identity.Caller
	if who.Kind != caller.Agent {
		return nil
	}
	call := &AgentCall{
		ID: a.id, ServerID: a.tool.ServerID, Name: a.tool.Name, Arguments: a.arguments,
		Risk: a.ruling.Risk, Schema: a.tool.InputSchema, Nested: a.run.opts.Admitted != nil, Asks: len(a.ruling.Approve) > 0,
	}
	if !a.ruling.Allow {
		call.Refused = "policy does not allow this call"
	}
	r, err := a.broker.decideAgent(ctx, AgentAct{Run: a.run.identity, Call: call})
	switch {
	case ctx.Err() != nil && err != nil:
		return a.cut(ctx)
	case err != nil:
		return undecided(err)
	}
	a.grant = r.Grant
	if r.Risk > a.ruling.Risk.Known() {
		a.ruling.Risk = r.Risk
	}
	a.ruling.Rules = slices.Concat(a.ruling.Rules, r.Rules)
	if !a.ruling.Allow {
		return nil // what policies say is said
	}
	if r.Refused != nil {
		a.ruling.Allow, a.ruling.Approve = false, nil
		f := &failure{Error: *r.Refused}
		f.detail = r.Refused.Message
		return f
	}
	a.ruling.Approve = append(a.ruling.Approve, r.Approve...)
	slices.Sort(a.ruling.Approve)
	a.ruling.Approve = slices.Compact(a.ruling.Approve)
	return nil
}

// errNoAgents is the error of an act of an agent where no agents are known.
var errNoAgents = errors.New("nothing is known of agents here")

func (b *Broker) decideAgent(ctx context.Context, act AgentAct) (AgentRuling, error) {
	if b.opts.Agents == nil {
		return AgentRuling{}, errNoAgents
	}
	// Also while ctx ends: an agent that was suspended is told so, and a decision takes no time.
	return b.opts.Agents.Decide(context.WithoutCancel(ctx), act)
}

// undecided is the failure of an act that nothing could be decided about.
func undecided(err error) *failure {
	f := failf(errortype.Sandbox, "it could not be decided whether the agent may do this, so it was not done").because(err).retryable()
	f.refused = true
	return f
}

// approved tells who decides about agents that a person has agreed.
func (a *attempt) approved(ctx context.Context) *failure {
	if a.grant == nil {
		return nil
	}
	refused, err := a.grant.Approve(ctx, a.verdict.By)
	if err != nil {
		return undecided(err)
	}
	if refused != nil {
		f := &failure{Error: *refused}
		f.detail = refused.Message
		return f
	}
	return nil
}

// endGrant says what became of an agent's call.
func (a *attempt) endGrant(ctx context.Context, done bool) {
	if a.grant == nil {
		return
	}
	if err := a.grant.End(context.WithoutCancel(ctx), done, 0); err != nil {
		a.broker.opts.Logger.ErrorContext(ctx, "what an agent's call was debited could not be returned",
			slog.String(telemetry.KeyCall, a.id), slog.Any(telemetry.KeyError, err))
	}
}

// Admission is what was decided about one run.
type Admission struct {
	// Approval says whether a person was asked about the run, and with what result.
	Approval approval.State

	grant  AgentGrant // nil for who is no agent
	broker *Broker
	run    Run
}

// Admit decides about a run before it begins; of agents alone there is something to
// decide. Where a person has to agree it waits for their answer. refused says why the
// run must not begin. The caller ends the admission, which is never nil.
func (b *Broker) Admit(ctx context.Context, run Run, longest time.Duration) (admission *Admission, refused *Error) {
	admission = &Admission{Approval: approval.NotRequired, broker: b, run: run}
	if run.Caller.Kind != caller.Agent {
		return admission, nil
	}
	r, err := b.decideAgent(ctx, AgentAct{Run: run, Longest: longest})
	switch {
	case err != nil:
		admission.log(ctx, err)
		return admission, &undecided(err).Error
	case r.Refused != nil:
		return admission, r.Refused
	}
	admission.grant = r.Grant
	if len(r.Approve) == 0 {
		return admission, nil
	}
	if fail := admission.ask(ctx, r); fail != nil {
		if fail.cause != nil {
			admission.log(ctx, fail.cause)
		}
		return admission, &fail.Error
	}
	return admission, nil
}

// ask asks a person about the run, as about a call of a tool of that name, and then
// again who decides about agents.
func (m *Admission) ask(ctx context.Context, r AgentRuling) *failure {
	b := m.broker
	a := &attempt{broker: b, id: telemetry.NewID("call"), began: b.opts.Now()}
	a.run = &RunCalls{broker: b, identity: m.run, limits: b.Limits(), opts: RunOptions{Redactor: b.opts.Redactor}}
	arguments, err := RunArguments(m.run)
	if err != nil {
		return undecided(err)
	}
	a.arguments, a.hash = arguments, b.recorder.Hash(arguments)
	a.call.Name, a.tool.Name = nameRun, nameRun
	a.rules, a.grant = b.rules.Load(), m.grant
	a.engine = a.rules.Policies
	a.ruling = policies.Decision{Allow: true, Approve: r.Approve, Rules: r.Rules, Risk: r.Risk}
	fail := a.approve(ctx)
	m.Approval = a.approval
	if fail != nil {
		fail.Message = strings.NewReplacer("the call", "the run", "this very call", "this very run").Replace(fail.Message)
	}
	return fail
}

// nameRun is what a question about a run names as the tool.
const nameRun = "run_code"

// RunArguments are what a run is in the form of the arguments of a call.
func RunArguments(run Run) (json.RawMessage, error) {
	return json.Marshal(struct {
		Language string `json:"language"`
		Code     string `json:"code"`
	}{run.Language, run.Code})
}

func (m *Admission) log(ctx context.Context, err error) {
	m.broker.opts.Logger.WarnContext(ctx, "a run of an agent was not begun", slog.String(telemetry.KeyRun, m.run.ID), slog.Any(telemetry.KeyError, err))
}

// End says whether the run was done, and how long it has kept its sandbox.
// Calling it twice is fine, and on nil.
func (m *Admission) End(ctx context.Context, done bool, kept time.Duration) {
	if m == nil || m.grant == nil {
		return
	}
	if err := m.grant.End(context.WithoutCancel(ctx), done, kept); err != nil {
		m.broker.opts.Logger.ErrorContext(ctx, "what an agent's run was debited and has not used could not be returned",
			slog.String(telemetry.KeyRun, m.run.ID), slog.Any(telemetry.KeyError, err))
	}
}
