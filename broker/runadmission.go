package broker

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Admission is the decision about one run.
type Admission struct {
	// Approval is the state of the run's approval by a person.
	Approval approval.State

	grant  *admission.Grant // nil if the run is refused
	broker *Broker
	run    Run
}

// Admit decides about a run before it starts. Only runs of agents can be refused. If a person must
// approve, Admit waits for the answer. refused is the reason why the run must not start. The caller
// must call End on the admission, which is never nil.
func (b *Broker) Admit(ctx context.Context, run Run, longest time.Duration) (m *Admission, refused *Error) {
	m = &Admission{Approval: approval.NotRequired, broker: b, run: run}
	fail := m.decide(ctx, longest)
	if fail == nil {
		return m, nil
	}
	if fail.cause != nil {
		b.opts.Logger.WarnContext(ctx, "a run of an agent was not begun", slog.String(telemetry.KeyRun, run.ID),
			slog.Any(telemetry.KeyError, fail.cause))
	}
	return m, &fail.Error
}

func (m *Admission) decide(ctx context.Context, longest time.Duration) *failure {
	arguments, err := json.Marshal(struct {
		Language string `json:"language"`
		Code     string `json:"code"`
	}{m.run.Language, m.run.Code})
	if err != nil {
		return undecided(err)
	}
	rules := m.broker.admission.Rules()
	r, grant, err := m.broker.admission.Decide(context.WithoutCancel(ctx), admission.Act{
		Kind: admission.Run, Agent: admission.AgentOf(m.run.Caller), Conversation: m.run.Caller.Session,
		Context:   m.run.Context,
		Arguments: arguments, Rules: rules, Longest: longest, RunID: m.run.ID,
	})
	switch {
	case err != nil:
		return undecided(err)
	case r.Error != nil:
		return failureOf(r)
	}
	if m.grant = grant; len(r.Rules.Approve) == 0 {
		return nil
	}
	return m.ask(ctx, r, rules, arguments)
}

// ask asks a person about the run, as about a call of a tool with the name run_code.
func (m *Admission) ask(ctx context.Context, r admission.Ruling, rules *admission.Rules,
	arguments json.RawMessage) *failure {
	b := m.broker
	a := &attempt{broker: b, id: telemetry.NewID("call"), began: b.opts.Now()}
	a.run = &RunCalls{broker: b, identity: newIdentity(m.run), limits: rules.Limits,
		opts: RunOptions{Redactor: b.opts.Redactor}}
	a.arguments, a.hash = arguments, b.recorder.Hash(arguments)
	a.call.Name, a.tool.Name = admission.RunCode, admission.RunCode
	a.rules, a.grant, a.ruling, a.decided = rules, m.grant, r.Rules, true
	fail := a.approve(ctx)
	m.Approval = a.approval
	if fail != nil {
		fail.Message = strings.NewReplacer("the call", "the run", "this very call", "this very run").Replace(
			fail.Message)
	}
	return fail
}

// End reports whether the run was performed, and how long it kept its sandbox. It is safe to call
// it more than once, and on nil.
func (m *Admission) End(ctx context.Context, done bool, kept time.Duration) {
	if m == nil {
		return
	}
	if err := m.grant.End(context.WithoutCancel(ctx), done, kept); err != nil {
		m.broker.opts.Logger.ErrorContext(ctx, "what an agent's run was debited and has not used could not be returned",
			slog.String(telemetry.KeyRun, m.run.ID), slog.Any(telemetry.KeyError, err))
	}
}

// endGrant reports the outcome of a call.
func (a *attempt) endGrant(ctx context.Context, done bool) {
	if err := a.grant.End(context.WithoutCancel(ctx), done, 0); err != nil {
		a.broker.opts.Logger.ErrorContext(ctx, "what an agent's call was debited could not be returned",
			slog.String(telemetry.KeyCall, a.id), slog.Any(telemetry.KeyError, err))
	}
}
