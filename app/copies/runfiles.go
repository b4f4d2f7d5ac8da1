package copies

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// RunFiles are the files that runs have attached. Those of a run of another node are fetched from its copy.
type RunFiles struct {
	*attachment.Store
	Copies *atomic.Pointer[Copies] // holds nil without an object store
	Node   func() *cluster.Node
	Logger *slog.Logger
}

// Files returns the files that a run has attached, with its owner.
func (f RunFiles) Files(runID string) (attachment.Set, error) {
	set, err := f.Store.Files(runID)
	if !errors.Is(err, attachment.ErrNotFound) {
		return set, err
	}
	ctx := context.Background() // Fetch has a time limit
	if owner := f.Node().Owner(ctx, runID); owner == "" || owner == f.Node().Name() {
		return set, err
	}
	f.Fetch(ctx, runID)
	return f.Store.Files(runID)
}

// Fetch stores the copies of a run on this machine, see Copies.Fetch. A failure is logged.
func (f RunFiles) Fetch(ctx context.Context, runID string) {
	c := f.Copies.Load()
	if c == nil {
		return
	}
	if err := c.Fetch(ctx, runID); err != nil {
		f.Logger.WarnContext(ctx, "the files of a run of another node could not be fetched",
			slog.String(telemetry.KeyRun, runID), slog.Any(telemetry.KeyError, err))
	}
}

// Records returns the records of a run in the copies of the logs of nodes, see clusterlog.CopiedRun. Without an object
// store, there are none.
func (f RunFiles) Records(ctx context.Context, runID string, nodes []string) ([]clusterlog.RunCopy, error) {
	c := f.Copies.Load()
	if c == nil || len(nodes) == 0 {
		return nil, nil
	}
	return clusterlog.CopiedRun(ctx, c.opts.Database, c.opts.Key, c.opts.Objects, runID, nodes)
}
