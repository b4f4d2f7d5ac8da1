package admission

import (
	"context"
	"log/slog"
	"sync"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// CountRefusal counts a record of a refused call of an account. It reports whether the rate of quota.Refusals permits
// the record now.
func (s *Service) CountRefusal(account string) bool {
	allowed, err := s.refused.Take(account, 1)
	if err == nil {
		allowed.Release()
	}
	return err == nil
}

// AwaitTurn delays a call that has a record in any case if its account has exceeded the rate of
// quota.Refusals, because the call may be refused, too. It returns an error if ctx ends first.
func (s *Service) AwaitTurn(ctx context.Context, who caller.Caller) error {
	return s.refused.AwaitRate(ctx, who.Account())
}

// rateRefusal is a kind of requests that are refused for the rate of their principal.
type rateRefusal struct{ agent, code string }

// rateRefusals counts requests without separate records. The zero value is ready to use.
type rateRefusals struct {
	mu    sync.Mutex // guards count
	count map[rateRefusal]int
}

// counted reports whether the refusal of a request is only counted. A request that exceeds the rate
// of its principal is not read, so it is not a decision about an act, and their number has no bound.
func (e *evaluation) counted(r Ruling) bool {
	if r.Error == nil || r.Error.Reason != TooOften && r.Error.Reason != NoRate ||
		e.service.CountRefusal(e.agent.Caller().Account()) {
		return false
	}
	e.unrecorded.mu.Lock()
	defer e.unrecorded.mu.Unlock()
	if e.unrecorded.count == nil {
		e.unrecorded.count = map[rateRefusal]int{}
	}
	e.unrecorded.count[rateRefusal{e.agent.ID, r.Error.Code}]++
	return true
}

// recordCounted records the counted refusals of an agent, or of all agents if agent is empty.
func (g *agentGate) recordCounted(ctx context.Context, agent string) error {
	g.unrecorded.mu.Lock()
	taken := map[rateRefusal]int{}
	for of, n := range g.unrecorded.count {
		if agent == "" || of.agent == agent {
			taken[of] = n
			delete(g.unrecorded.count, of)
		}
	}
	g.unrecorded.mu.Unlock()
	for of, n := range taken {
		r := audit.Record{
			Kind: audit.KindAction, Identity: audit.Identity{Principal: of.agent, CallerKind: string(caller.Agent)},
			Ruling: audit.Ruling{Decision: Denied}, Effect: audit.Effect{ErrorType: of.code},
			RunFacts: audit.RunFacts{Calls: n},
			Detail:   "further requests that were refused for this reason; calls has their number",
		}
		if err := g.log.Note(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// closeRefusals records what is still counted when the gate closes.
func (g *agentGate) closeRefusals() {
	ctx := context.Background() // nobody waits for it
	if err := g.recordCounted(ctx, ""); err != nil {
		g.logger.ErrorContext(ctx, "the refused requests of agents could not be recorded",
			slog.Any(telemetry.KeyError, err))
	}
}
