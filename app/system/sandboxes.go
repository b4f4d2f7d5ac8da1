package system

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/runner"
)

// closeTimeout bounds the removal of everything at the end.
const closeTimeout = 30 * time.Second

func openRunner(ctx context.Context, c *config.Config, home string, pooled bool, logger *slog.Logger) (*runner.Runner,
	error) {
	driver, err := newDriver(ctx, c, logger)
	if err != nil {
		return nil, err
	}
	const none = -1 // for the runner, 0 means the default
	waiting, pool := c.Sandbox.Queue, c.Sandbox.Pool
	if waiting == 0 {
		waiting = none
	}
	if pool == 0 || !pooled {
		pool = none
	}
	return runner.New(driver, &runner.Options{
		Logger: logger, StateDir: store.Run(home), MaxSandboxes: c.Sandbox.MaxSandboxes, MaxWaiting: waiting,
		Pool: pool,
		Save: pooled, SuspendDir: store.Suspended(home), // the directory of living sandboxes may be in memory
		SuspendSize: c.Runs.SuspendedSize,
	})
}

func closeRunner(ctx context.Context, sandboxes *runner.Runner) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return sandboxes.Close(ctx)
}

// sandboxLimits are the configured limits of one sandbox.
func sandboxLimits(c *config.Config) runner.Limits {
	return runner.Limits{
		Memory: c.Sandbox.Memory, CPUs: c.Sandbox.CPUs, PIDs: c.Sandbox.PIDs,
		Disk: c.Sandbox.Disk, Inodes: c.Sandbox.Inodes, OpenFiles: c.Sandbox.OpenFiles,
		Timeout: c.Sandbox.Timeout,
		Stdout:  c.Limits.Stdout, Stderr: c.Limits.Stderr, Output: c.Limits.Output,
	}
}

// proofRequest asks for a sandbox that only has to prove itself, of the first language
// that has an image.
func proofRequest(c *config.Config, opened map[string]runner.Image) runner.Request {
	return runner.Request{Image: opened[slices.Sorted(maps.Keys(opened))[0]], Limits: sandboxLimits(c)}
}

// ProveSandbox starts a sandbox, waits until it has passed the checks that every sandbox makes
// before it gets code, and closes it. unenforced is why this host cannot enforce every limit, or
// nil.
func ProveSandbox(ctx context.Context, c *config.Config) (unenforced, err error) {
	quiet := slog.New(slog.DiscardHandler)
	driver, err := newDriver(ctx, c, quiet)
	if err != nil {
		return nil, err
	}
	if err := driver.Check(ctx); err != nil {
		return nil, err
	}
	home, err := store.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	opened, _, err := openImages(c, home, &undo)
	if err != nil {
		return nil, err
	}
	sandboxes, err := openRunner(ctx, c, home, false, quiet)
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { return closeRunner(ctx, sandboxes) })
	sandbox, err := sandboxes.Acquire(ctx, proofRequest(c, opened))
	if err != nil {
		return nil, err
	}
	return driver.Unenforced(), sandbox.Close()
}
