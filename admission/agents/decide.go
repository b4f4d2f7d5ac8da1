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

// Ruling is what becomes of an act.
type Ruling struct {
	Decision
	// Risk is that of the act, whatever decided; RiskUnknown if it was not assessed.
	Risk policies.Risk
	// Rules is what the rules about agents said; the zero value where they were not asked.
	Rules policies.Decision
	// Grant is set when the act is approved, or is as soon as a person says so.
	Grant *Grant
}

// Grant is the permission for one act. Of a pending one, Approve has to be called
// before the act; End is called after it, whatever became of it. Neither may be called
// concurrently.
type Grant struct {
	attempt attempt
	act     Act
	at      time.Time     // when it was debited
	debited budget.Amount // 0 while it is pending, and once it has ended
	pending bool
}

// Decide decides about an act that an agent is about to do, as VerifyAction does
// about one that it announces, in one transaction: an act that is approved is
// debited and has its step when Decide returns. Where a person has to agree, the
// decision is PENDING, nothing is debited, and Grant.Approve decides again. The
// decision is in the audit log; it is durable there with the next record that is.
// The error is ErrUnknown, or that nothing could be decided, which permits nothing.
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

// prepare does all that takes time before the transaction, as it does for an announced action.
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

// transact decides and keeps what follows from it.
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

// idleTime is how long a session may be silent before its next act begins a new
// conversation: revisions of the protocol without sessions end none.
const idleTime = 30 * time.Minute

// isUnnamed says whether the conversation is the session, and not one that the host named.
func (g *Grant) isUnnamed() bool { return g.attempt.context.Conversation == g.act.Conversation }

// rule says what the agent's permissions, the conversation and the rules have
// against the act.
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

// Approve decides about a pending act again, now that the person named by has
// approved it: the agent may have been suspended meanwhile, its step taken, its budget
// spent. The decision is never PENDING. The error says that nothing could be decided.
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

// End says what became of the act: whether it was done at all, and how long a
// run kept its sandbox. What was debited for more is returned. Calling it twice is fine.
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

// record notes a decision, or what was returned, in the audit log.
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
