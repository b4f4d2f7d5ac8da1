package ctrd

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/runner/bounds"
)

// Sweep removes what is left of a sandbox whose Airlock has died.
func (d *Driver) Sweep(ctx context.Context, stateDir string) error {
	left, ok, err := readRecord(stateDir)
	if err != nil {
		return err
	}
	if err := bounds.Sweep(ctx, stateDir); err != nil {
		return err
	}
	if !ok {
		return nil
	}
	if left.Address != d.opts.Address {
		return fmt.Errorf("it is with another containerd, at %q", left.Address)
	}
	return d.daemon.remove(ctx, left.ID)
}
