package upstreams

import (
	"context"
	"errors"
	"log/slog"

	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// RequestRefresh requests every Airlock of this user or this cluster that serves to read the lists of its servers
// again. They do so within seconds.
func (c *Catalog) RequestRefresh(ctx context.Context) error { return c.opts.State.RequestRefresh(ctx) }

// RefreshOnRequest reads all lists again when an operator requests it, until ctx ends. It checks
// for a request whenever looks receives.
func (c *Catalog) RefreshOnRequest(ctx context.Context, looks <-chan struct{}) {
	last := state.RefreshRequested()
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks:
		}
		if asked := state.RefreshRequested(); !asked.Equal(last) {
			last = asked
			c.askAgain(ctx)
		}
	}
}

// refreshOne asks one server for its tools, and updates the snapshot. Fixed tools stay.
func (c *Catalog) refreshOne(ctx context.Context, serverID string) error {
	if c.upstreams == nil {
		return nil
	}
	err := c.upstreams.Refresh(ctx, serverID)
	c.ListAgain(context.WithoutCancel(ctx))
	return err
}

// askAgain asks servers for their tools again: all of them if none is named.
func (c *Catalog) askAgain(ctx context.Context, serverIDs ...string) {
	var err error
	if len(serverIDs) == 0 {
		err = c.Refresh(ctx)
	}
	for _, id := range serverIDs {
		err = errors.Join(err, c.upstreams.Refresh(ctx, id))
	}
	if err != nil && ctx.Err() == nil {
		c.opts.Logger.WarnContext(ctx, "not every server could be asked for its tools",
			slog.Any(telemetry.KeyError, err))
	}
}

// Warm prepares the sandboxes of the pool for the current tools.
func (c *Catalog) Warm(ctx context.Context) {
	if c.upstreams != nil { // else the tools are fixed
		select {
		case <-c.opened:
		case <-ctx.Done():
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.announceLocked(ctx)
}
