package system

import (
	"context"
	"errors"
	"log/slog"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// startCopies copies the files of runs until stop is called, if this node has an object store.
func (s *System) startCopies(ctx context.Context, db *database.DB) (stop func(), err error) {
	if s.config.Cluster.Objects == "" {
		return func() {}, nil
	}
	key, err := s.state.Identity()
	if err != nil {
		return nil, err
	}
	c, err := state.NewCopies(s.config, db, key, s.Node().Name(), s.recordings, s.attachments, s.opts.Logger)
	if err != nil {
		return nil, err
	}
	s.copies.Store(c)
	return c.Start(ctx), nil
}

// RunFiles are the files that runs have attached. Those of a run of another node are fetched from its copy.
type RunFiles struct {
	*attachment.Store
	system *System
}

// Files returns the files that a run has attached, with its owner.
func (f RunFiles) Files(runID string) (attachment.Set, error) {
	set, err := f.Store.Files(runID)
	c := f.system.copies.Load()
	if c == nil || !errors.Is(err, attachment.ErrNotFound) {
		return set, err
	}
	ctx := context.Background() // Fetch has a time limit
	if owner := f.system.Node().Owner(ctx, runID); owner == "" || owner == f.system.Node().Name() {
		return set, err
	}
	if err := c.Fetch(ctx, runID); err != nil {
		f.system.opts.Logger.WarnContext(ctx, "the files of a run of another node could not be fetched",
			slog.String(telemetry.KeyRun, runID), slog.Any(telemetry.KeyError, err))
	}
	return f.Store.Files(runID)
}
