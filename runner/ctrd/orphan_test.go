package ctrd_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ctrd"
	"github.com/airlock-mcp/airlock/runner/ctrd/ctrdtest"
	"github.com/airlock-mcp/airlock/runner/runnertest"
)

// envDaemon passes the daemon's directory to the process that is killed.
const envDaemon = "AIRLOCK_TEST_DAEMON"

// TestVictim starts and closes sandboxes until it is killed.
func TestVictim(t *testing.T) {
	runnertest.Victim(t, func(t *testing.T) (runner.Driver, *slog.Logger, runner.Request) {
		env := testenv.Sandbox(t)
		driver := newDriver(t, &ctrdtest.Daemon{Address: os.Getenv(envDaemon)})
		return driver, logger(t), runner.Request{Image: image(t, env.Home, "python"), Limits: runner.DefaultLimits()}
	})
}

// TestKilledAirlock kills an Airlock with SIGKILL at random moments. The daemon
// lives on, and must have nothing left either.
func TestKilledAirlockOnContainerd(t *testing.T) {
	env := testenv.Sandbox(t)
	daemon := ctrdtest.Run(t)
	driver := newDriver(t, daemon)
	// The image is there before the first kill, so that the kills meet sandboxes.
	s, err := newRunner(t, driver).Acquire(t.Context(),
		runner.Request{Image: image(t, env.Home, "python"), Limits: runner.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	orphans := runnertest.Orphans{
		Driver: driver, Logger: logger(t), Kills: 8, Within: 1500 * time.Millisecond,
		Env:  []string{"AIRLOCK_HOME=" + env.Home, envDaemon + "=" + daemon.Address},
		Left: func(t *testing.T) []string { return ctrd.Resources(t, driver) },
	}
	orphans.Run(t)
}
