package admission

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// RecordWithdrawal records that a person has withdrawn a grant.
func RecordWithdrawal(ctx context.Context, log Log, logger *slog.Logger, g approval.Grant, by string) {
	record := audit.Record{Kind: audit.KindApproval, Identity: audit.Identity{RunID: g.RunID, SessionID: g.SessionID,
		Principal: g.Principal, Issuer: g.Issuer, CallerKind: g.CallerKind, Profile: g.Profile},
		Act:    audit.Act{ServerID: g.ServerID, ToolName: g.ToolName},
		Ruling: audit.Ruling{Approver: by},
		Detail: fmt.Sprintf("%s withdrawn: it had covered %d calls", g.ID, g.Used)}
	if err := log.Append(context.WithoutCancel(ctx), record); err != nil {
		logger.ErrorContext(ctx, "the end of a grant could not be recorded", slog.String("grant", g.ID),
			slog.Any(telemetry.KeyError, err))
	}
}
