package agents

import (
	"context"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// Use decides whether an agent may use a built-in tool of Airlock without external effects, such as
// its files or a question to models. It checks the rate limit, the agent's state, its blocked tools
// and its budget, and debits the tool's price, in one durable transaction. refused is nil if the
// use is permitted. The caller records the use; Use records the debit. The error is ErrUnknown, or
// the reason why no decision was possible, and then nothing is permitted.
func (s *Service) Use(ctx context.Context, agentID, tool string) (refused *Error, err error) {
	r, err := s.use(ctx, agentID, use{name: tool, recorded: true, allowed: func(Agent) *Error { return nil }})
	if refused = r.Error; refused != nil && r.RetryAt != nil {
		refused.Message += "; it begins anew at " + r.RetryAt.UTC().Format(time.RFC3339)
	}
	return refused, err
}

// Verification is a request to the verification engines.
type Verification struct {
	// Type is its name in permissions, prices and activity: "verify_math".
	Type string
	// Engine is the engine that allowed_engines must list. If it is empty, any engine may answer,
	// which an agent with such a list may not request.
	Engine string
	// Parts are the types of the parts of a batch. Their prices replace that of the batch.
	Parts []string
	// Conversation is the conversation of the request, for the session budget. It may be empty.
	Conversation string
	// Recorded is set if the caller records the decision, so that only the debit is recorded here.
	Recorded bool
}

// DecideVerification decides about an agent's request to the engines, as Use does for a tool, and
// also checks allowed_engines. It counts one request and debits its price. The decision is APPROVED
// with a Grant, DENIED, or BUDGET_EXCEEDED. The caller must call Grant.End, with done false if no
// engine was asked.
func (s *Service) DecideVerification(ctx context.Context, agentID string, v Verification) (Ruling, error) {
	return s.use(ctx, agentID, use{name: v.Type, parts: v.Parts, conversation: v.Conversation, recorded: v.Recorded, allowed: func(a Agent) *Error {
		if engines := a.Permissions.AllowedEngines; engines != nil && !slices.Contains(engines, v.Engine) {
			return refuse(CodePolicy, "the agent's permissions do not allow the engine of %s (allowed_engines)", v.Type)
		}
		return nil
	}})
}

// use describes a use that an agent requests.
type use struct {
	name         string
	parts        []string // paid for instead of name; empty for name
	allowed      func(Agent) *Error
	conversation string
	recorded     bool // the caller records the decision
}

// price returns the price of the use, capped at the maximum chargeable amount.
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

// denied returns the reason to refuse the use regardless of the budget, or nil.
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

// use decides about a use, debits it, and records both in the audit log.
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

// recordUse records the decision about a use, or only its debit, in the audit log.
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
	if a.agent, err = find(ctx, tx, a.agent.ID); err != nil { // it may have been suspended in the meantime
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
