package system

import (
	"context"
	"os"

	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/runner"
)

// Tried returns what the server on trial has done, also after Close.
func (s *System) Tried() contained.State { return s.catalog.contained.State(s.opts.Trial.Server) }

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
		Roots: func() (string, error) { return roots(home) },
		Runner: func(ctx context.Context) (*runner.Runner, error) {
			return openRunner(ctx, c.config.Load(), home, false, c.opts.Logger)
		},
	})
	return nil
}
