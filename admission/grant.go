package admission

import (
	"context"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Grant is the permission for one act. If it is pending, the caller must call Approve before the
// act. The caller must call End after the act, also if the act fails. The methods are not safe for
// concurrent use.
type Grant struct {
	evaluation *evaluation
	pending    bool
}

// Approve decides about a pending act again after the person named by has approved it: the rules may
// have changed, the agent may have been suspended, its step taken or its budget spent in the
// meantime. The decision is never PENDING. The error means that no decision was possible.
func (g *Grant) Approve(ctx context.Context, by string) (Ruling, error) {
	e := g.evaluation
	switch {
	case g.pending && e.service.Rules() != e.act.Rules:
		return e.denied(&Error{Message: "the rules changed while the approval was awaited", Reason: Stale}), nil
	case !g.pending || e.agentGate == nil:
		return e.ruling(Approved), nil
	}
	var r Ruling
	err := e.opts.Database.Update(ctx, func(tx database.Tx) (err error) {
		g.pending, e.debited, e.kept = true, 0, nil // the transaction may be repeated
		if r, err = g.again(ctx, tx); err != nil || e.debited == 0 {
			return err
		}
		r.Approver = by
		return e.keepRecord(ctx, tx, e.recordOf(r, e.debited, ""))
	})
	if err != nil {
		g.pending, e.debited = true, 0
		return Ruling{}, err
	}
	r.Approver = by
	telemetry.CountAgentAction(ctx, e.agent.ID, r.Decision, e.debited.Dollars())
	if e.kept != nil {
		return r, e.noteKept(ctx)
	}
	return r, e.log.Note(ctx, e.recordOf(r, 0, ""))
}

// again repeats the steps of the decision, without counting a second request.
func (g *Grant) again(ctx context.Context, tx database.Tx) (Ruling, error) {
	e := g.evaluation
	refused, err := e.refusal(ctx, tx)
	if err != nil || refused != nil {
		return e.denied(refused), err
	}
	cost := e.cost()
	if err := e.ledger.CheckCost(ctx, tx, e.accounts(), cost); err != nil {
		return e.exceeded(err)
	}
	g.pending, e.debitAt, e.debited = false, e.now(), cost
	if err := e.ledger.Adjust(ctx, tx, e.accounts(), cost, e.debitAt); err != nil {
		return Ruling{}, err
	}
	return e.ruling(Approved), e.commit(ctx, tx, true)
}

// End reports the outcome of the act: whether it was performed, and how long a run kept its
// sandbox. Any excess debit is refunded. It is safe to call End more than once, and on nil.
func (g *Grant) End(ctx context.Context, done bool, kept time.Duration) error {
	if g == nil || g.evaluation.debited == 0 {
		return nil
	}
	e := g.evaluation
	back, detail := e.debited, "returned, because it was not done"
	if done {
		back = e.secondsCost(e.act.Longest) - e.secondsCost(min(kept, e.act.Longest))
		detail = "returned, for time of the sandbox that was not used"
	}
	e.debited = 0
	if back <= 0 {
		return nil
	}
	err := e.opts.Database.Update(ctx, func(tx database.Tx) error {
		if err := e.ledger.Adjust(ctx, tx, e.accounts(), -back, e.debitAt); err != nil {
			return err
		}
		return e.keepRecord(ctx, tx, e.recordOf(Ruling{}, -back, detail))
	})
	if err != nil {
		return err
	}
	telemetry.CountAgentAction(ctx, e.agent.ID, "", -back.Dollars())
	return e.noteKept(ctx)
}
