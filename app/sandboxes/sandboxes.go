// Package sandboxes opens the sandboxes that a configuration describes: their driver with its programs, the images
// that are baked into them, and the runners for the code of callers and for the engines.
package sandboxes

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

// Open opens the sandboxes for the code of callers. If pooled is set, some are kept ready. The caller must close
// them with Close.
func Open(ctx context.Context, c *config.Config, home string, pooled bool, logger *slog.Logger) (*runner.Runner,
	error) {
	return openWith(ctx, c, pooled, runner.Options{
		Logger: logger, StateDir: store.Run(home), MaxSandboxes: c.Sandbox.MaxSandboxes, MaxWaiting: c.Sandbox.Queue,
		Pool: c.Sandbox.Pool,
		Save: pooled, SuspendDir: store.Suspended(home), // the directory of living sandboxes may be in memory
		SuspendSize: c.Runs.SuspendedSize,
	})
}

// OpenVerifier is Open for the engines of verifications.
func OpenVerifier(ctx context.Context, c *config.Config, home string, pooled bool,
	logger *slog.Logger) (*runner.Runner, error) {
	return openWith(ctx, c, pooled, runner.Options{
		Logger: logger, StateDir: store.Run(home), MaxSandboxes: c.Verify.MaxSandboxes, MaxWaiting: c.Verify.Queue,
		Pool: c.Verify.Pool,
	})
}

// openWith opens sandboxes with the configured driver. The numbers of opts are those of the configuration.
func openWith(ctx context.Context, c *config.Config, pooled bool, opts runner.Options) (*runner.Runner, error) {
	driver, err := newDriver(ctx, c, opts.Logger)
	if err != nil {
		return nil, err
	}
	const none = -1 // for the runner, 0 means the default
	if opts.MaxWaiting == 0 {
		opts.MaxWaiting = none
	}
	if opts.Pool == 0 || !pooled {
		opts.Pool = none
	}
	return runner.New(driver, &opts)
}

// Close ends the sandboxes.
func Close(ctx context.Context, all *runner.Runner) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return all.Close(ctx)
}

// Limits are the configured limits of one sandbox.
func Limits(c *config.Config) runner.Limits {
	return runner.Limits{
		Memory: c.Sandbox.Memory, CPUs: c.Sandbox.CPUs, PIDs: c.Sandbox.PIDs,
		Disk: c.Sandbox.Disk, Inodes: c.Sandbox.Inodes, OpenFiles: c.Sandbox.OpenFiles,
		Timeout: c.Sandbox.Timeout,
		Stdout:  c.Limits.Stdout, Stderr: c.Limits.Stderr, Output: c.Limits.Output,
	}
}

// ProofRequest asks for a sandbox that only has to prove itself, of the first language
// that has an image.
func ProofRequest(c *config.Config, opened map[string]runner.Image) runner.Request {
	return runner.Request{Image: opened[slices.Sorted(maps.Keys(opened))[0]], Limits: Limits(c)}
}

// Prove starts a sandbox, waits until it has passed the checks that every sandbox makes
// before it gets code, and closes it. unenforced is why this host cannot enforce every limit, or
// nil.
func Prove(ctx context.Context, c *config.Config) (unenforced, err error) {
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
	opened, _, err := OpenImages(c, home, &undo)
	if err != nil {
		return nil, err
	}
	all, err := Open(ctx, c, home, false, quiet)
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { return Close(ctx, all) })
	sandbox, err := all.Acquire(ctx, ProofRequest(c, opened))
	if err != nil {
		return nil, err
	}
	return driver.Unenforced(), sandbox.Close()
}
