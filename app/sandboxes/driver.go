package sandboxes

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ctrd"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// envRunsc is the environment variable with the path of the runsc program. It is needed if runsc is
// neither beside airlock nor in PATH.
const envRunsc = "AIRLOCK_RUNSC"

// shimName is the file name of gVisor's shim for containerd.
const shimName = "containerd-shim-runsc-v1"

// driver is implemented by all drivers. A driver is never closed.
type driver interface {
	runner.Driver
	// Unenforced returns why this host cannot enforce every limit, or nil if it can.
	Unenforced() error
}

// newDriver returns the configured driver after checking that its programs exist. If the host
// cannot enforce a limit that the configuration sets, newDriver returns an error. A default limit
// that cannot be enforced is only logged as a warning.
func newDriver(ctx context.Context, c *config.Config, logger *slog.Logger) (driver, error) {
	path, err := findRunsc()
	if err != nil {
		return nil, err
	}
	var made driver
	switch c.Sandbox.Driver {
	case runsc.Name:
		made, err = newRunsc(c, path, logger)
	case ctrd.Name:
		made, err = newContainerd(ctx, c, path, logger)
	default:
		err = &setup.Error{Err: fmt.Errorf("the driver %q is unknown", c.Sandbox.Driver),
			Advice: "write `driver: runsc` under sandbox"}
	}
	if err != nil {
		return nil, err
	}
	if lack := made.Unenforced(); lack != nil && len(c.Sandbox.Asked) > 0 {
		return nil, &setup.Error{Err: fmt.Errorf("the configuration asks for sandbox.%s, but %w",
			strings.Join(c.Sandbox.Asked, " and sandbox."), lack),
			Advice: "run Airlock as root or in a delegated control group (systemd-run --user --scope -p Delegate=yes " +
				"airlock …), or leave these keys out"}
	}
	return made, nil
}

func newRunsc(c *config.Config, path string, logger *slog.Logger) (driver, error) {
	made, err := runsc.New(&runsc.Options{
		Path: path, Logger: logger, Unenforced: len(c.Sandbox.Asked) == 0,
	})
	if err != nil {
		return nil, &setup.Error{Err: err, Advice: "run `make build`, which builds the right one beside airlock"}
	}
	return made, nil
}

func newContainerd(ctx context.Context, c *config.Config, path string, logger *slog.Logger) (driver, error) {
	shim, err := findShim(c)
	if err != nil {
		return nil, err
	}
	made, err := ctrd.New(ctx, &ctrd.Options{
		Address: c.Sandbox.Containerd.Address, Snapshotter: c.Sandbox.Containerd.Snapshotter,
		Shim: shim, Runsc: path, Logger: logger, Unenforced: len(c.Sandbox.Asked) == 0,
	})
	if err != nil {
		return nil, &setup.Error{Err: err,
			Advice: "docs/sandbox.md shows what the driver needs; `driver: runsc` under sandbox needs no daemon"}
	}
	return made, nil
}

// FindPrograms returns the path of the runsc program, after checking everything that the configured
// driver needs.
func FindPrograms(ctx context.Context, c *config.Config) (string, error) {
	if _, err := newDriver(ctx, c, slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	return findRunsc()
}

// findRunsc looks for runsc at $AIRLOCK_RUNSC, beside airlock itself, and in PATH.
func findRunsc() (string, error) {
	if path := os.Getenv(envRunsc); path != "" {
		return path, nil
	}
	path, ok := find("runsc")
	if !ok {
		return "", &setup.Error{Err: fmt.Errorf(
			"the program runsc is missing: it lies neither beside airlock nor in PATH, and %s is not set", envRunsc),
			Advice: "run `make build`, which builds it beside airlock"}
	}
	return path, nil
}

// findShim looks for the shim at the configured path, beside airlock itself, and in PATH.
func findShim(c *config.Config) (string, error) {
	if path := c.Sandbox.Containerd.Shim; path != "" {
		return path, nil
	}
	path, ok := find(shimName)
	if !ok {
		return "", &setup.Error{Err: fmt.Errorf(
			"the program %s is missing: it lies neither beside airlock nor in PATH, and sandbox.containerd.shim is "+
				"not set", shimName),
			Advice: "run `make containerd`, which builds it beside airlock"}
	}
	return path, nil
}

// find looks for a program beside airlock itself, and in PATH.
func find(name string) (path string, ok bool) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if _, err := os.Stat(beside); err == nil {
			return beside, true
		}
	}
	path, err := exec.LookPath(name)
	return path, err == nil
}
