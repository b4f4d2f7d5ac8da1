package orchestrator

import (
	"context"
	"log/slog"
	"strings"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// snapshotFor returns the tools of a run. It waits, at most for the run's time limit, for
// servers that the code names and that are still starting, and for the person to sign in to those
// that need it. It waits for no other server.
func (o *Orchestrator) snapshotFor(ctx context.Context, req Request) *catalog.Snapshot {
	snapshot := o.parts.Snapshots.Snapshot(req.Caller)
	if req.Script != nil { // it has no tools, even if its caller has
		return snapshot.Within(&catalog.Profile{})
	}
	if starting := StartingServers(snapshot, string(req.Code)); len(starting) > 0 {
		limited, cancel := context.WithTimeout(ctx, o.limits(req).Timeout)
		defer cancel()
		if err := o.parts.Snapshots.Await(limited, starting...); err != nil {
			o.parts.Logger.WarnContext(ctx, "a run begins without a server that it names",
				slog.Any(telemetry.KeyError, err))
		}
		snapshot = o.parts.Snapshots.Snapshot(req.Caller)
	}
	for _, server := range snapshot.Missing("") {
		if !server.SignIn || !names(string(req.Code), server.ServerID) {
			continue
		}
		run := broker.Run{ID: req.ID, Caller: req.Caller, CodeHash: canon.Digest(req.Code)}
		if o.parts.Broker.SignIn(ctx, run, server.ServerID) == nil {
			snapshot = o.parts.Snapshots.Snapshot(req.Caller)
		}
	}
	return snapshot
}

// StartingServers returns the servers that have not answered yet and that the
// code names, by ID or by module.
func StartingServers(snapshot *catalog.Snapshot, code string) []string {
	var ids []string
	for _, server := range snapshot.Missing("") {
		if server.Starting && names(code, server.ServerID) {
			ids = append(ids, server.ServerID)
		}
	}
	return ids
}

// names reports whether code names a server, by ID or by module.
func names(code, serverID string) bool {
	return strings.Contains(code, serverID) || strings.Contains(code, catalog.ModuleName(serverID))
}
