package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/airlock-mcp/airlock/broker/budget"
	"github.com/airlock-mcp/airlock/internal/database"
)

// Use says whether an agent may use a tool of Airlock's own that reaches nothing
// by itself, such as its files or a question to models: how often it asks, its
// state, its blocked tools and its budget decide, and what it may use is debited
// with the tool's price, in one durable transaction. refused is nil where it may.
// The record of the use is the caller's. The error is ErrUnknown, or that nothing
// could be decided, which permits nothing.
func (s *Service) Use(ctx context.Context, agentID, tool string) (refused *Error, err error) {
	a := attempt{Service: s, action: Action{Type: tool}}
	if a.agent, err = s.Find(ctx, agentID); err != nil {
		return nil, err
	}
	if refused = a.limit(ctx); refused != nil {
		return refused, nil
	}
	err = s.opts.Database.Update(ctx, func(tx database.Tx) (err error) {
		refused = nil
		if a.agent, err = find(ctx, tx, agentID); err != nil { // it may have been suspended meanwhile
			return err
		}
		charge := budget.Charge{Cost: s.opts.Prices.of(tool)}
		switch {
		case a.agent.Status != Active:
			refused, charge = refuse(CodePolicy, "the agent is %s", a.agent.Status), budget.Charge{}
		case slices.Contains(a.agent.Permissions.BlockedTools, tool):
			refused, charge = refuse(CodePolicy, "the agent's permissions block %s (blocked_tools)", tool), budget.Charge{}
		default:
			if refused, err = a.overBudget(ctx, tx, charge); err != nil || refused != nil {
				return err
			}
		}
		return a.ledger.Record(ctx, tx, a.accounts(), charge)
	})
	return refused, err
}

// overBudget says which budget a charge would exceed; nil: none.
func (a *attempt) overBudget(ctx context.Context, tx database.Tx, charge budget.Charge) (*Error, error) {
	err := a.ledger.Check(ctx, tx, a.accounts(), charge)
	var exceeded *budget.Exceeded
	if !errors.As(err, &exceeded) {
		return nil, err
	}
	text := exceeded.Text
	if !exceeded.Again.IsZero() {
		text = fmt.Sprintf("%s; it begins anew at %s", text, exceeded.Again.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return &Error{Code: exceeded.Code, Message: text}, nil
}
