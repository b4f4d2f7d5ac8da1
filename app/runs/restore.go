package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Restorer continues runs that wait for people and whose process has ended. All exported fields are required.
type Restorer struct {
	Registry     *Registry
	Orchestrator *orchestrator.Orchestrator
	Audit        string               // the directory of the audit log
	Node         func() *cluster.Node // returns nil without a cluster
	Logger       *slog.Logger

	unread []string // the runs that could not be read or started yet
}

// logged returns the records of runs from the audit log.
func (r *Restorer) logged(since time.Time, ids map[string]bool) (map[string]*audit.RunTree, error) {
	return audit.ShowRuns(r.Audit, ids, audit.Period{Since: since})
}

// Restore continues the runs that the process before this one has suspended.
func (r *Restorer) Restore(ctx context.Context) error {
	requests, again, err := r.Orchestrator.Suspended(ctx, r.logged)
	if err != nil {
		r.Logger.ErrorContext(ctx, "some suspended runs cannot be continued", slog.Any(telemetry.KeyError, err))
	}
	r.unread = again
	return r.restart(ctx, requests)
}

// restart starts runs. Those that cannot be started yet are tried again, unless this process ends.
func (r *Restorer) restart(ctx context.Context, requests []orchestrator.Request) (err error) {
	for _, req := range requests {
		_, failed := r.Registry.Start(ctx, req)
		if failed == nil {
			continue
		}
		if err = errors.Join(err, fmt.Errorf("continuing a suspended run: %w", failed)); errors.Is(failed, ErrClosed) {
			return err
		}
		r.unread = append(r.unread, req.ID)
	}
	return err
}

// adoptInterval is how often a node looks for suspended runs of nodes that do not act any more.
const adoptInterval = 2 * time.Second

// Adopt continues the suspended runs of nodes of the cluster that do not act any more, and ends those that other
// nodes have taken from this one, until stop is called.
func (r *Restorer) Adopt(ctx context.Context) (stop func()) {
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
			err := errors.Join(r.adoptSome(ctx), r.Orchestrator.Abandon(ctx))
			if errors.Is(err, ErrClosed) { // another node takes what is left when this one has ended
				return
			}
			if err != nil && ctx.Err() == nil && r.Node().Check() == nil {
				r.Logger.WarnContext(ctx, "suspended runs of other nodes could not be taken over",
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
func (r *Restorer) adoptSome(ctx context.Context) error {
	for ctx.Err() == nil {
		claimed, err := r.Orchestrator.Claim(ctx)
		if err != nil {
			return err
		}
		ids := append(r.unread, claimed...)
		if len(ids) == 0 {
			return nil
		}
		requests, again, err := r.Orchestrator.Adopt(ctx, ids, r.logged)
		r.unread = again
		if err = errors.Join(err, r.restart(ctx, requests)); err != nil || len(again) > 0 {
			return err
		}
	}
	return nil
}
