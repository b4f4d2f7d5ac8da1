package cli

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/app/config"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// gvisorVersion is the version of gVisor that Airlock is tested with, and the
// only one it runs. A test holds it against build/gvisor/go.mod.
const gvisorVersion = "v0.0.0-20260905035102-160fafc42237"

// envRunsc names the runsc program where it lies neither beside airlock nor in PATH.
const envRunsc = "AIRLOCK_RUNSC"

// newDriver returns the configured driver after it has looked at what it needs.
// Where the host cannot enforce a limit that the configuration asks for, it
// refuses; one that nobody asked for is missing with a warning.
func newDriver(c *config.Config, logger *slog.Logger) (*runsc.Driver, error) {
	if c.Sandbox.Driver != runsc.Name {
		return nil, &usageError{fmt.Sprintf("the driver %q is not part of this version", c.Sandbox.Driver), "write `driver: runsc` under sandbox"}
	}
	path, err := findRunsc()
	if err != nil {
		return nil, err
	}
	driver, err := runsc.New(&runsc.Options{
		Path: path, Version: gvisorVersion, Logger: logger, Unenforced: len(c.Sandbox.Asked) == 0,
	})
	if err != nil {
		return nil, &hinted{err, "run `make build`, which builds the right one beside airlock", ExitUsage}
	}
	if lack := driver.Unenforced(); lack != nil && len(c.Sandbox.Asked) > 0 {
		return nil, &hinted{fmt.Errorf("the configuration asks for sandbox.%s, but %w", strings.Join(c.Sandbox.Asked, " and sandbox."), lack),
			"run Airlock as root or in a delegated control group (systemd-run --user --scope -p Delegate=yes airlock …), or leave these keys out", ExitUsage}
	}
	return driver, nil
}

// findRunsc looks for the program where $AIRLOCK_RUNSC says, beside airlock
// itself, and in PATH.
func findRunsc() (string, error) {
	if path := os.Getenv(envRunsc); path != "" {
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "runsc")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath("runsc")
	if err != nil {
		return "", &hinted{fmt.Errorf("the program runsc is missing: it lies neither beside airlock nor in PATH, and %s is not set", envRunsc),
			"run `make build`, which builds it beside airlock", ExitUsage}
	}
	return path, nil
}
