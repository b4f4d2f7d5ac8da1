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

// Agents decides what callers of the kind Agent may do, in addition to the policies for all
// callers. Decide is safe for concurrent use. If it returns an error, no decision was possible and
// nothing is permitted.
type Agents interface {
	// Decide decides about one run or one call. It debits it unless a person must approve it first.
	Decide(ctx context.Context, act AgentAct) (AgentRuling, error)
}

// AgentAct is a run or a call that an agent is about to make.
type AgentAct struct {
	Run  Run
	Call *AgentCall // nil for a run
	// Longest is the maximum time for which a run keeps its sandbox.
	Longest time.Duration
}

// AgentCall is the call of an AgentAct.
type AgentCall struct {
	ID             string // call_…
	ServerID, Name string
	Arguments      json.RawMessage
	Risk           policies.Risk   // of the tool
	Schema         json.RawMessage // the tool's input schema
	Nested         bool            // the call is made by code whose run was already decided
	Asks           bool            // policies require a person's approval
	Refused        string          // the reason why policies deny it; empty if they permit it
}

// AgentRuling is the decision about an act. The zero value permits nothing.
type AgentRuling struct {
	Refused *Error // the error for the code; nil if the act is permitted
	// Rules are the rules that decided. Rules with an @approve are also in Approve: the people who
	// must approve before the act.
	Rules   []policies.Rule
	Approve []string
	Risk    policies.Risk // of the act; it is not below that of the tool
	Grant   AgentGrant    // set when the act is permitted
}

// AgentGrant is the permission for one act. Its methods are not called concurrently.
type AgentGrant interface {
	// Approve is called when the person by has approved the act. It returns the reason why the act
	// must still not be performed, or nil.
	Approve(ctx context.Context, by string) (*Error, error)
	// End reports whether the act was performed, and how long a run kept its sandbox. It may be
	// called more than once.
	End(ctx context.Context, done bool, kept time.Duration) error
}

// decideAgent evaluates the rules about agents if the caller is an agent.
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
		return nil // the decision of the policies applies
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

// errNoAgents is returned for an act of an agent if agents are not configured.
var errNoAgents = errors.New("nothing is known of agents here")

func (b *Broker) decideAgent(ctx context.Context, act AgentAct) (AgentRuling, error) {
	if b.opts.Agents == nil {
		return AgentRuling{}, errNoAgents
	}
	// The decision is fast, and a suspended agent gets the reason, so it is not cancelled with ctx.
	return b.opts.Agents.Decide(context.WithoutCancel(ctx), act)
}

// undecided returns the failure of an act for which no decision was possible.
func undecided(err error) *failure {
	f := failf(errortype.Sandbox, "it could not be decided whether the agent may do this, so it was not done").because(err).retryable()
	f.refused = true
	return f
}

// approved notifies the agent service that a person has approved the act.
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

// endGrant reports the outcome of an agent's call.
func (a *attempt) endGrant(ctx context.Context, done bool) {
	if a.grant == nil {
		return
	}
	if err := a.grant.End(context.WithoutCancel(ctx), done, 0); err != nil {
		a.broker.opts.Logger.ErrorContext(ctx, "what an agent's call was debited could not be returned",
			slog.String(telemetry.KeyCall, a.id), slog.Any(telemetry.KeyError, err))
	}
}

// Admission is the decision about one run.
type Admission struct {
	// Approval is the state of the run's approval by a person.
	Approval approval.State

	grant  AgentGrant // nil if the caller is not an agent
	broker *Broker
	run    Run
}

// Admit decides about a run before it starts. Only runs of agents can be refused. If a person must
// approve, Admit waits for the answer. refused is the reason why the run must not start. The caller
// must call End on the admission, which is never nil.
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

// ask asks a person about the run, as about a call of a tool with that name, and then asks the
// agent service again.
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

// nameRun is the tool name shown in a question about a run.
const nameRun = "run_code"

// RunArguments returns a run in the form of the arguments of a call.
func RunArguments(run Run) (json.RawMessage, error) {
	return json.Marshal(struct {
		Language string `json:"language"`
		Code     string `json:"code"`
	}{run.Language, run.Code})
}

func (m *Admission) log(ctx context.Context, err error) {
	m.broker.opts.Logger.WarnContext(ctx, "a run of an agent was not begun", slog.String(telemetry.KeyRun, m.run.ID), slog.Any(telemetry.KeyError, err))
}

// End reports whether the run was performed, and how long it kept its sandbox. It is safe to call
// it more than once, and on nil.
func (m *Admission) End(ctx context.Context, done bool, kept time.Duration) {
	if m == nil || m.grant == nil {
		return
	}
	if err := m.grant.End(context.WithoutCancel(ctx), done, kept); err != nil {
		m.broker.opts.Logger.ErrorContext(ctx, "what an agent's run was debited and has not used could not be returned",
			slog.String(telemetry.KeyRun, m.run.ID), slog.Any(telemetry.KeyError, err))
	}
}
