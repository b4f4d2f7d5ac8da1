package upstreams

import (
	"context"
	"os"

	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/sandboxes"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/runner"
)

// prepareContained makes what starts contained servers. Nothing is started, and no driver is needed, until one is.
func (c *Catalog) prepareContained() error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	dial := c.opts.Dial
	if dial == nil {
		dial = (&reach.Dialer{}).DialContext
	}
	c.contained = contained.New(&contained.Options{
		Home: home, Logger: c.opts.Logger, Dial: dial, Trial: c.opts.Trial,
		Roots: func() (string, error) { return sandboxes.Roots(home) },
		Runner: func(ctx context.Context) (*runner.Runner, error) {
			return sandboxes.Open(ctx, c.config.Load(), home, false, c.opts.Logger)
		},
	})
	return nil
}
