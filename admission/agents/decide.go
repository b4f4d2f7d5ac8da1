package agents

import (
	"context"
	"errors"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/policies"
)

// Ruling is the decision about an act.
type Ruling struct {
	Decision
	// Risk is the assessed risk of the act, whatever the decision; RiskUnknown if it was not
	// assessed.
	Risk policies.Risk
	// Rules is the decision of the rules about agents, or the zero value if they were not
	// evaluated.
	Rules policies.Decision
	// Grant is set if the act is approved or a person can still approve it.
	Grant *Grant
}

// Grant is the permission for one act. If it is pending, the caller must call Approve before the
// act. The caller must call End after the act, whatever its outcome. The methods are not safe for
// concurrent use.
type Grant struct {
	attempt attempt
	act     Act
	at      time.Time     // when it was debited
	debited budget.Amount // 0 while it is pending, and once it has ended
	pending bool
}

// Decide decides about an act that an agent is about to perform, as VerifyAction does for announced
// actions. It uses one transaction: when Decide returns, an approved act is debited and has its
// step. If a person must approve, the decision is PENDING, nothing is debited, and Grant.Approve
// decides again. The decision is in the audit log; it becomes durable with the next durable record.
// The error is ErrUnknown, or the reason why no decision was possible, and then nothing is
// permitted.
func (s *Service) Decide(ctx context.Context, act Act) (Ruling, error) {
	g := &Grant{attempt: attempt{Service: s}, act: act}
	a := &g.attempt
	var err error
	if a.agent, err = s.recent(ctx, act.AgentID); err != nil {
		return Ruling{}, err
	}
	r, err := g.decide(ctx)
	if err != nil {
		return Ruling{}, err
	}
	if err := g.record(ctx, r.Decision, g.debited, ""); err != nil {
		return Ruling{}, err
	}
	if r.Decision.Decision == Approved || r.Decision.Decision == Pending {
		r.Grant = g
	}
	return r, nil
}

func (g *Grant) decide(ctx context.Context) (r Ruling, err error) {
	a := &g.attempt
	a.action.Type = g.act.name()
	if refused := a.limit(ctx); refused != nil {
		return Ruling{Decision: a.deny(refused)}, nil
	}
	if err := g.prepare(ctx); err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			return Ruling{Decision: a.deny(refused)}, nil
		}
		return Ruling{}, err
	}
	err = a.opts.Database.Update(ctx, func(tx database.Tx) (err error) {
		r, err = g.transact(ctx, tx)
		return err
	})
	return r, err
}

// prepare does the slow work before the transaction, as for an announced action.
func (g *Grant) prepare(ctx context.Context) error {
	a := &g.attempt
	done, err := a.assessing.begin(ctx, a.agent.Share(), len(g.act.Arguments)+len(g.act.Context))
	if err != nil {
		return err
	}
	defer done()
	if a.context, err = g.act.place(); err != nil {
		return err
	}
	if a.opts.RequireState && a.context.StateHash == "" {
		return refuse(CodeStateMissing, "pre_action_state_hash and state_source are required here, in the context of each request")
	}
	if a.action, err = g.act.action(); err != nil {
		return err
	}
	a.at.Step, a.at.given = a.context.Step, a.context.Step > 0
	if a.at.Fingerprint, err = a.action.Fingerprint(); err != nil {
		return err
	}
	if a.context.StateHash != "" {
		if a.onState, err = a.action.fingerprintOn(a.context.StateHash); err != nil {
			return err
		}
	}
	return g.assess(ctx)
}

// assess determines the risk of the act and applies the rules.
func (g *Grant) assess(ctx context.Context) (err error) {
	a := &g.attempt
	a.risk = runRisk()
	if !g.act.isRun() {
		subject, err := g.act.subject()
		if err != nil {
			return err
		}
		if a.risk, err = admission.Assess(ctx, subject); err != nil {
			return err
		}
	}
	a.describe = func(agent Agent) (policies.Act, *Error) {
		act, refused := agent.actOf(g.act, a.risk)
		if refused != "" {
			return act, refuse(CodePolicy, "%s", refused)
		}
		return act, nil
	}
	a.judge()
	return nil
}

// transact decides and stores the consequences.
func (g *Grant) transact(ctx context.Context, tx database.Tx) (Ruling, error) {
	a := &g.attempt
	refused, r, err := g.rule(ctx, tx)
	if err != nil {
		return r, err
	}
	if refused != nil {
		r.Decision.Decision, r.Error = Denied, refused
		return r, a.ledger.Record(ctx, tx, a.accounts(), budget.Charge{})
	}
	charge := budget.Charge{Cost: a.costs(g.act)}
	if err := a.ledger.Check(ctx, tx, a.accounts(), charge); err != nil {
		r.Decision, err = exceeded(r.Decision, err)
		return r, err
	}
	if g.pending = g.act.Asks || len(r.Rules.Approve) > 0; g.pending {
		r.Decision.Decision, charge.Cost = Pending, 0
	}
	g.at, g.debited = a.opts.Now(), charge.Cost
	if err := a.ledger.Record(ctx, tx, a.accounts(), charge); err != nil {
		return r, err
	}
	a.state.perform(&a.at, a.onState, g.act.Nested, !g.pending)
	return r, a.store(ctx, tx)
}

// idleTime is how long a session may be inactive before its next act starts a new conversation.
// Protocol revisions without sessions do not report the end of a session.
const idleTime = 30 * time.Minute

// isUnnamed reports whether the conversation is the session because the host named none.
func (g *Grant) isUnnamed() bool { return g.attempt.context.Conversation == g.act.Conversation }

// rule checks the act against the agent's permissions, the conversation and the rules, and returns
// the refusal.
func (g *Grant) rule(ctx context.Context, tx database.Tx) (*Error, Ruling, error) {
	a := &g.attempt
	if err := a.reload(ctx, tx); err != nil {
		return nil, Ruling{}, err
	}
	if err := a.load(ctx, tx); err != nil {
		return nil, Ruling{}, err
	}
	now := a.opts.Now().Unix()
	if g.isUnnamed() && a.state.At != 0 && now-a.state.At >= int64(idleTime.Seconds()) {
		a.state = conversationState{}
	}
	a.state.At = now
	r := Ruling{Decision: a.decision(Approved), Risk: a.risk.Risk}
	r.RiskLevel = a.risk.Risk.Level()
	if a.refused != nil {
		return a.refused, r, nil
	}
	if refused := a.state.checkAct(a.at, a.onState, g.act.Nested); refused != nil {
		if refused.Code == CodeLength && g.isUnnamed() {
			refused.Message += ": connect again, or name a new conversation_id in the _meta of the request (io.github.airlock-mcp/context)"
		}
		return refused, r, nil
	}
	r.Rules = a.rules
	r.Policies = r.Rules.Policies()
	switch {
	case !r.Rules.Allow:
		return a.forbidden(), r, nil
	case g.act.Refused != "":
		return refuse(CodePolicy, "%s", g.act.Refused), r, nil
	}
	return nil, r, nil
}

// Approve decides about a pending act again after the person named by has approved it: the agent
// may have been suspended, its step taken or its budget spent in the meantime. The decision is
// never PENDING. The error means that no decision was possible.
func (g *Grant) Approve(ctx context.Context, by string) (Decision, error) {
	if !g.pending {
		return g.attempt.decision(Approved), nil
	}
	a := &g.attempt
	var d Decision
	err := a.opts.Database.Update(ctx, func(tx database.Tx) error {
		refused, r, err := g.rule(ctx, tx)
		d = r.Decision
		d.Approver = by
		if err != nil {
			return err
		}
		if refused != nil {
			d.Decision, d.Error = Denied, refused
			return nil
		}
		cost := a.costs(g.act)
		if err := a.ledger.CheckCost(ctx, tx, a.accounts(), cost); err != nil {
			d, err = exceeded(d, err)
			return err
		}
		g.pending, g.at, g.debited = false, a.opts.Now(), cost
		if err := a.ledger.Adjust(ctx, tx, a.accounts(), cost, g.at); err != nil {
			return err
		}
		a.state.perform(&a.at, a.onState, g.act.Nested, true)
		return a.store(ctx, tx)
	})
	if err != nil {
		g.pending, g.debited = true, 0
		return Decision{}, err
	}
	return d, g.record(ctx, d, g.debited, "")
}

// End reports the outcome of the act: whether it was performed, and how long a run kept its
// sandbox. Any excess debit is refunded. It is safe to call End more than once.
func (g *Grant) End(ctx context.Context, done bool, kept time.Duration) error {
	a := &g.attempt
	back, detail := g.debited, "returned, because it was not done"
	if done {
		back = a.secondsCost(g.act.Longest) - a.secondsCost(min(kept, g.act.Longest))
		detail = "returned, for time of the sandbox that was not used"
	}
	g.debited = 0
	if back <= 0 {
		return nil
	}
	err := a.opts.Database.Update(ctx, func(tx database.Tx) error {
		return a.ledger.Adjust(ctx, tx, a.accounts(), -back, g.at)
	})
	if err != nil {
		return err
	}
	return g.record(ctx, Decision{}, -back, detail)
}

// record writes a decision or a refund to the audit log.
func (g *Grant) record(ctx context.Context, d Decision, cost budget.Amount, detail string) error {
	r := g.attempt.recordOf(d)
	r.RunID, r.CallID, r.ServerID, r.Detail = g.act.RunID, g.act.CallID, g.act.ServerID, detail
	if g.act.Tool != "" {
		r.ToolName = g.act.Tool
	}
	setCost(&r, cost)
	return g.attempt.opts.Log.Note(ctx, r)
}

func setCost(r *audit.Record, cost budget.Amount) {
	if cost != 0 {
		r.CostUSD = cost.String()
	}
}
