package system

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// interrupted returns a run of a process before this one that ended with its process, or could not be continued by the
// next one, from the audit log.
func (s *System) interrupted(id string) (runs.Past, bool) {
	listed, ok, err := s.runLog.Find(id)
	if err != nil {
		s.opts.Logger.ErrorContext(context.Background(), "a run could not be looked up in the audit log",
			slog.String(telemetry.KeyRun, id), slog.Any(telemetry.KeyError, err))
	}
	if err != nil || !ok || listed.State != audit.OutcomeUnknown && listed.State != errortype.Interrupted {
		return runs.Past{}, false
	}
	tree, err := s.runLog.Tree(listed)
	if err != nil || tree.End == nil {
		return runs.Past{}, false // it has left the log since
	}
	why := cmp.Or(tree.End.Detail, "its state could not be continued when Airlock started again")
	envelope := orchestrator.Refused(orchestrator.Request{ID: id, Language: listed.Language}, s.opts.Version,
		errortype.Interrupted, orchestrator.Interruption(why, tree))
	began, _ := time.Parse(time.RFC3339Nano, listed.Began)
	ended, _ := time.Parse(time.RFC3339Nano, tree.End.Time)
	return runs.Past{Owner: listed.Owner, Language: listed.Language, Began: began, Ended: ended,
		Envelope: envelope}, true
}
