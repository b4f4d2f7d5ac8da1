package runs

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Interrupted returns a function for Options.Past that looks for runs in the audit log.
func Interrupted(log *runlog.Log, version string, logger *slog.Logger) func(id string) (Past, bool) {
	return func(id string) (Past, bool) { return interrupted(log, version, logger, id) }
}

// interrupted returns a run of a process before this one that ended with its process, or could not be continued by the
// next one, from the audit log.
func interrupted(log *runlog.Log, version string, logger *slog.Logger, id string) (Past, bool) {
	listed, ok, err := log.Find(id)
	if err != nil {
		logger.ErrorContext(context.Background(), "a run could not be looked up in the audit log",
			slog.String(telemetry.KeyRun, id), slog.Any(telemetry.KeyError, err))
	}
	if err != nil || !ok || listed.State != audit.OutcomeUnknown && listed.State != errortype.Interrupted {
		return Past{}, false
	}
	tree, err := log.Tree(listed)
	if err != nil || tree.End == nil {
		return Past{}, false // it has left the log since
	}
	why := cmp.Or(tree.End.Detail, "its state could not be continued when Airlock started again")
	envelope := orchestrator.Refused(orchestrator.Request{ID: id, Language: listed.Language}, version,
		errortype.Interrupted, orchestrator.Interruption(why, tree))
	began, _ := time.Parse(time.RFC3339Nano, listed.Began)
	ended, _ := time.Parse(time.RFC3339Nano, tree.End.Time)
	return Past{Owner: listed.Owner, Language: listed.Language, Began: began, Ended: ended,
		Envelope: envelope}, true
}
