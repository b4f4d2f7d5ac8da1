package cli

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/airlock-mcp/airlock/internal/app/config"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// gvisorVersion is the version of gVisor that Airlock is tested with, and the
// only one it runs. A test holds it against build/gvisor/go.mod.
const gvisorVersion = "v0.0.0-20260905035102-160fafc42237"

// envRunsc names the runsc program where it lies neither beside airlock nor in PATH.
const envRunsc = "AIRLOCK_RUNSC"

// newDriver returns the configured driver after it has looked at what it needs.
func newDriver(c *config.Config, logger *slog.Logger) (runner.Driver, error) {
	if c.Sandbox.Driver != runsc.Name {
		return nil, &usageError{fmt.Sprintf("the driver %q is not part of this version", c.Sandbox.Driver), "write `driver: runsc` under sandbox"}
	}
	path, err := findRunsc()
	if err != nil {
		return nil, err
	}
	driver, err := runsc.New(&runsc.Options{Path: path, Version: gvisorVersion, Logger: logger})
	if err != nil {
		return nil, &hinted{err, "run `make build`, which builds the right one beside airlock", ExitUsage}
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
