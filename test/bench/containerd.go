package main

import (
	"context"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/runner/ctrd/ctrdtest"
)

// openContainerd starts an Airlock that keeps no sandbox ready and has each made
// by a private containerd. Like the daemon, it needs root.
func (b *bench) openContainerd(ctx context.Context, undo *cleanup.Stack) (*face, error) {
	daemon, err := ctrdtest.Start(ctrdtest.Built(b.root))
	if err != nil {
		return nil, err
	}
	undo.Add(daemon.Close)
	return b.openFace(ctx, map[string]any{"sandbox": map[string]any{
		"driver": "containerd", "pool": 0, "containerd": map[string]string{"address": daemon.Address},
	}}, undo)
}
