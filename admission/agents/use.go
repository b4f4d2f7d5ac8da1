package agents

import (
	"context"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// Use says whether an agent may use a tool of Airlock's own that reaches nothing
// by itself, such as its files or a question to models: how often it asks, its
// state, its blocked tools and its budget decide, and what it may use is debited
// with the tool's price, in one durable transaction. refused is nil where it may.
// The record of the use is the caller's, that of the debit is made here. The error is ErrUnknown, or that nothing could be decided, which permits nothing.
func (s *Service) Use(ctx context.Context, agentID, tool string) (refused *Error, err error) {
	r, err := s.use(ctx, agentID, use{name: tool, recorded: true, allowed: func(Agent) *Error { return nil }})
	if refused = r.Error; refused != nil && r.RetryAt != nil {
		refused.Message += "; it begins anew at " + r.RetryAt.UTC().Format(time.RFC3339)
	}
	return refused, err
}

// Verification is a question to the engines.
type Verification struct {
	// Type is what permissions, prices and activity call it: "verify_math".
	Type string
	// Engine is the one that allowed_engines has to name; empty: any may answer, which
	// an agent with such a list may not ask.
	Engine string
	// Parts are the types of the questions that it is made of, where it is made of
	// several: their prices are due in place of its own.
	Parts []string
	// Conversation is where it is asked, for the budget of sessions; empty: in none.
	Conversation string
	// Recorded says that the caller records what was decided: only the debit is noted.
	Recorded bool
}

// DecideVerification decides about a question of an agent to the engines, as Use does about
// a tool, with allowed_engines beside: one request, debited with its price. The decision
// is APPROVED with a Grant, to be ended with done false when no engine was asked; or
// DENIED; or BUDGET_EXCEEDED.
func (s *Service) DecideVerification(ctx context.Context, agentID string, v Verification) (Ruling, error) {
	return s.use(ctx, agentID, use{name: v.Type, parts: v.Parts, conversation: v.Conversation, recorded: v.Recorded, allowed: func(a Agent) *Error {
		if engines := a.Permissions.AllowedEngines; engines != nil && !slices.Contains(engines, v.Engine) {
			return refuse(CodePolicy, "the agent's permissions do not allow the engine of %s (allowed_engines)", v.Type)
		}
		return nil
	}})
}

// use is what an agent wants to use.
type use struct {
	name         string
	parts        []string // what is paid for in place of name; empty for name
	allowed      func(Agent) *Error
	conversation string
	recorded     bool // the caller records what was decided
}

// price is what the use costs, as far as an amount can be charged.
func (u use) price(p Prices) budget.Amount {
	if len(u.parts) == 0 {
		return p.of(u.name)
	}
	var sum budget.Amount
	for _, part := range u.parts {
		sum = min(sum+p.of(part), budget.MaxAmount)
	}
	return sum
}

// denied says why the agent may not have the use, whatever its budget is; nil: it may.
func (u use) denied(a Agent) *Error {
	if a.Status != Active {
		return refuse(CodePolicy, "the agent is %s", a.Status)
	}
	for _, name := range append([]string{u.name}, u.parts...) {
		if slices.Contains(a.Permissions.BlockedTools, name) {
			return refuse(CodePolicy, "the agent's permissions block %s (blocked_tools)", truncate.Head(name, maxName))
		}
	}
	return u.allowed(a)
}

// use decides about a use, debits it, and notes both in the audit log.
func (s *Service) use(ctx context.Context, agentID string, u use) (r Ruling, err error) {
	g := &Grant{attempt: attempt{Service: s, action: Action{Type: u.name}, context: Context{Conversation: u.conversation}}}
	a := &g.attempt
	if a.agent, err = s.recent(ctx, agentID); err != nil {
		return r, err
	}
	if refused := a.limit(ctx); refused != nil {
		r.Decision = a.deny(refused)
	} else if err = s.opts.Database.Update(ctx, func(tx database.Tx) (err error) {
		r.Decision, err = g.debit(ctx, tx, u)
		return err
	}); err != nil {
		return Ruling{}, err
	}
	if err := g.recordUse(ctx, r.Decision, u); err != nil {
		return Ruling{}, err
	}
	if r.Decision.Decision == Approved {
		r.Grant = g
	}
	return r, nil
}

// recordUse notes what was decided about a use, or only what it was debited, in the audit log.
func (g *Grant) recordUse(ctx context.Context, d Decision, u use) error {
	switch {
	case !u.recorded:
		return g.record(ctx, d, g.debited, "")
	case g.debited != 0:
		return g.record(ctx, Decision{}, g.debited, "debited for the use of a tool of Airlock's own")
	}
	return nil
}

// debit decides about a use and debits it.
func (g *Grant) debit(ctx context.Context, tx database.Tx, u use) (d Decision, err error) {
	a := &g.attempt
	g.debited, g.at = 0, a.opts.Now()
	if a.agent, err = find(ctx, tx, a.agent.ID); err != nil { // it may have been suspended meanwhile
		return d, err
	}
	if refused := u.denied(a.agent); refused != nil {
		return a.denied(ctx, tx, refused)
	}
	d = a.decision(Approved)
	charge := budget.Charge{Cost: u.price(a.opts.Prices)}
	if err := a.ledger.Check(ctx, tx, a.accounts(), charge); err != nil {
		return exceeded(d, err)
	}
	g.debited = charge.Cost
	return d, a.ledger.Record(ctx, tx, a.accounts(), charge)
}
