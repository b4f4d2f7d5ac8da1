package orchestrator

import (
	"context"
	"log/slog"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// snapshotFor returns the tools of a run. It waits, at most for the run's time limit, for
// servers that the code names and that are still starting. It waits for no other server.
func (o *Orchestrator) snapshotFor(ctx context.Context, req Request) *catalog.Snapshot {
	snapshot := o.parts.Snapshots.Snapshot(req.Caller)
	if req.Script != nil { // it has no tools, even if its caller has
		return snapshot.Within(&catalog.Profile{})
	}
	starting := StartingServers(snapshot, string(req.Code))
	if len(starting) == 0 {
		return snapshot
	}
	ctx, cancel := context.WithTimeout(ctx, o.limits(req).Timeout)
	defer cancel()
	if err := o.parts.Snapshots.Await(ctx, starting...); err != nil {
		o.parts.Logger.WarnContext(ctx, "a run begins without a server that it names",
			slog.Any(telemetry.KeyError, err))
	}
	return o.parts.Snapshots.Snapshot(req.Caller)
}

// StartingServers returns the servers that have not answered yet and that the
// code names, by ID or by module.
func StartingServers(snapshot *catalog.Snapshot, code string) []string {
	var ids []string
	for _, server := range snapshot.Missing("") {
		if server.Starting && (strings.Contains(code, server.ServerID) ||
			strings.Contains(code, catalog.ModuleName(server.ServerID))) {
			ids = append(ids, server.ServerID)
		}
	}
	return ids
}
