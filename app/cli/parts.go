package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// closeTimeout bounds the removal of everything at the end.
const closeTimeout = 30 * time.Second

func newLogger(stderr io.Writer, asJSON bool, least slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: least}
	if asJSON {
		return slog.New(slog.NewJSONHandler(stderr, opts))
	}
	return slog.New(slog.NewTextHandler(stderr, opts))
}

// openImages opens every image; undo closes them.
func openImages(home string, undo *cleanup.Stack) (map[string]runner.Image, error) {
	opened := map[string]runner.Image{}
	for _, definition := range images.List() {
		image, err := images.Open(home, definition.Name)
		if err != nil {
			return nil, err
		}
		undo.Add(image.Close)
		opened[definition.Name] = runner.Image{
			Name: image.Name, Digest: image.Digest, RootFS: image.RootFS, Layout: image.Layout, Args: image.Args, Env: image.Env,
			Unsaved: !definition.Restorable(),
		}
	}
	return opened, nil
}

func openRunner(ctx context.Context, c *config.Config, home string, opened map[string]runner.Image, pooled bool, logger *slog.Logger) (*runner.Runner, error) {
	driver, err := newDriver(ctx, c, logger)
	if err != nil {
		return nil, err
	}
	selfTest := opened[images.List()[0].Name]
	const none = -1 // the runner's word for a count of zero
	waiting, pool := c.Sandbox.Queue, c.Sandbox.Pool
	if waiting == 0 {
		waiting = none
	}
	if pool == 0 || !pooled {
		pool = none
	}
	return runner.New(driver, &runner.Options{
		Logger: logger, StateDir: store.Run(home, os.Getenv), MaxSandboxes: c.Sandbox.MaxSandboxes, MaxWaiting: waiting, Pool: pool,
		SelfTest: &selfTest,
	})
}

func closeRunner(ctx context.Context, sandboxes *runner.Runner) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return sandboxes.Close(ctx)
}

// limits are the configured limits of one sandbox.
func limits(c *config.Config) runner.Limits {
	return runner.Limits{
		Memory: c.Sandbox.Memory, CPUs: c.Sandbox.CPUs, PIDs: c.Sandbox.PIDs,
		Disk: c.Sandbox.Disk, Inodes: c.Sandbox.Inodes, OpenFiles: c.Sandbox.OpenFiles,
		Timeout: c.Sandbox.Timeout,
		Stdout:  c.Limits.Stdout, Stderr: c.Limits.Stderr, Output: c.Limits.Output,
	}
}

func newSessionID() string { return telemetry.NewID("ses") }

// principal is the user of the operating system that Airlock runs for.
func principal() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid:%d", os.Getuid())
}
