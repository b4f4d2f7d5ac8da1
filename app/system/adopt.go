package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// openSuspended opens the store of suspended runs: files of this machine, or the database of the cluster.
func (s *System) openSuspended(ctx context.Context) error {
	if !s.opts.Durable {
		return nil
	}
	if s.config.Cluster.Database == "" {
		files, err := suspended.Open(store.Suspended(s.directories.Home), s.directories.Keys)
		s.suspended = files
		return err
	}
	db, err := s.state.Open(ctx)
	if err != nil {
		return err
	}
	shared, err := suspended.OpenShared(ctx, db, s.state.Node())
	s.suspended = shared
	return err
}

// logged returns the records of runs from the audit log.
func (s *System) logged(since time.Time, ids map[string]bool) (map[string]*audit.RunTree, error) {
	return audit.ShowRuns(s.directories.Audit, ids, audit.Period{Since: since})
}

// restoreRuns continues the runs that the process before this one has suspended.
func (s *System) restoreRuns(ctx context.Context) error {
	requests, again, err := s.orchestrator.Suspended(ctx, s.logged)
	if err != nil {
		s.opts.Logger.ErrorContext(ctx, "some suspended runs cannot be continued", slog.Any(telemetry.KeyError, err))
	}
	s.unread = again
	return s.restart(ctx, requests)
}

func (s *System) restart(ctx context.Context, requests []orchestrator.Request) error {
	for _, req := range requests {
		if _, err := s.runs.Start(ctx, req); err != nil {
			return fmt.Errorf("continuing a suspended run: %w", err)
		}
	}
	return nil
}

// adoptInterval is how often a node looks for suspended runs of nodes that do not act any more.
const adoptInterval = 2 * time.Second

// adoptRuns continues the suspended runs of nodes of the cluster that do not act any more, and ends those that other
// nodes have taken from this one, until stop is called.
func (s *System) adoptRuns(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var adopting sync.WaitGroup
	adopting.Go(func() {
		tick := time.NewTicker(adoptInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			err := errors.Join(s.adoptSome(ctx), s.orchestrator.Abandon(ctx))
			if errors.Is(err, runs.ErrClosed) { // another node takes what is left when this one has ended
				return
			}
			if err != nil && ctx.Err() == nil && s.Node().Check() == nil {
				s.opts.Logger.WarnContext(ctx, "suspended runs of other nodes could not be taken over",
					slog.Any(telemetry.KeyError, err))
			}
		}
	})
	return func() {
		cancel()
		adopting.Wait()
	}
}

// adoptSome takes over suspended runs until none is left.
func (s *System) adoptSome(ctx context.Context) error {
	for ctx.Err() == nil {
		claimed, err := s.orchestrator.Claim(ctx)
		if err != nil {
			return err
		}
		ids := append(s.unread, claimed...)
		if len(ids) == 0 {
			return nil
		}
		requests, again, err := s.orchestrator.Adopt(ctx, ids, s.logged)
		s.unread = again
		if err = errors.Join(err, s.restart(ctx, requests)); err != nil || len(again) > 0 {
			return err
		}
	}
	return nil
}
