package broker

import (
	"context"
	"log/slog"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// refusedFor is why calls were refused that neither a policy nor a person has denied.
type refusedFor struct {
	errorType, limit string
}

// counted reports whether the record of a refused call, whose account has exceeded the rate of quota.Refusals, is only
// counted. Each decision of the policies and of people has a record.
func (a *attempt) counted(r audit.Record) bool {
	if r.Decision != "" || r.ErrorType == errortype.PolicyDenied { // the latter alone: the tool is withheld
		return false
	}
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	a.run.counts.refused[refusedFor{r.ErrorType, r.Limit}]++
	return true
}

// awaitTurn delays the answer to a refused call until its account may have another record, or the run ends. So an
// account cannot fill the log with calls that the policies deny.
func (a *attempt) awaitTurn(ctx context.Context) {
	if a.broker.AwaitTurn(ctx, a.run.identity.Caller) != nil {
		<-ctx.Done() // at once, or at a deadline that is before the turn
	}
}

// recordRefusals records the counted calls of a run that has ended.
func (s *RunCalls) recordRefusals() {
	s.mu.Lock()
	refused := s.counts.refused
	s.counts.refused = map[refusedFor]int{}
	s.mu.Unlock()
	ctx := context.Background()
	for reason, calls := range refused {
		a := &attempt{run: s, broker: s.broker, id: telemetry.NewID("call")}
		r := a.record(audit.KindOutcome)
		r.Outcome, r.ErrorType, r.Limit, r.Calls = audit.OutcomeRefused, reason.errorType, reason.limit, calls
		r.Detail = "further calls that were refused for this reason; calls has their number"
		if err := s.broker.recorder.Note(ctx, r); err != nil {
			s.broker.opts.Logger.ErrorContext(ctx, "the refused calls of a run could not be recorded",
				slog.String(telemetry.KeyRun, s.identity.ID), slog.Any(telemetry.KeyError, err))
		}
	}
}

// AwaitTurn delays a call without code, which is a run with records, like admission.AwaitTurn.
func (b *Broker) AwaitTurn(ctx context.Context, who caller.Caller) error {
	return b.admission.AwaitTurn(ctx, who)
}
