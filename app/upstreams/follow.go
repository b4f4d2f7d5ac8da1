package upstreams

import (
	"context"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/catalog/pins"
)

const (
	// followInterval is how often a node asks whether other nodes have changed pins, or ask for new lists of tools.
	followInterval = time.Second
	// unknownGeneration is the generation of pins that could not be read.
	unknownGeneration = -1
)

// Follow puts in force what other nodes of the cluster do with tools, until ctx ends: they accept definitions, find
// changed ones, and sign in to servers.
func (c *Catalog) Follow(ctx context.Context) {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	select {
	case <-c.opened:
	case <-ctx.Done():
	}
	refresh, known := c.opts.State.LastRefresh(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		generation, err := c.opts.State.Pins(c.config.Load()).Generation(ctx)
		if err == nil && generation != c.comparison().Generation {
			c.ListAgain(ctx)
			if outdated := c.comparison().Outdated; len(outdated) > 0 {
				c.askAgain(ctx, outdated...)
				c.ListAgain(ctx)
			}
		}
		now, read := c.opts.State.LastRefresh(ctx)
		if read && known && now != refresh {
			c.askAgain(ctx)
		}
		if read {
			refresh, known = now, true
		}
	}
}

// comparison returns the last comparison of the tools with the pins.
func (c *Catalog) comparison() pins.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pinned
}

// foundLocked returns the changed definitions that this node has found for the first time.
func (c *Catalog) foundLocked(now pins.Report) []pins.Change {
	return slices.DeleteFunc(slices.Clone(now.Changed), func(change pins.Change) bool {
		return change.IsNew() || slices.ContainsFunc(c.pinned.Changed, change.Same)
	})
}
