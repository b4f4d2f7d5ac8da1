package runsc_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
)

// TestVictim starts and closes sandboxes until it is killed.
func TestVictim(t *testing.T) {
	runnertest.Victim(t, func(t *testing.T) (runner.Driver, *slog.Logger, runner.Request) {
		env := testenv.Sandbox(t)
		return newDriver(t, env), logger(t), runner.Request{Image: image(t, env.Home, "python"),
			Limits: runner.DefaultLimits()}
	})
}

// TestKilledAirlock kills an Airlock with SIGKILL at random moments.
func TestKilledAirlock(t *testing.T) {
	env := testenv.Sandbox(t)
	orphans := runnertest.Orphans{
		Driver: newDriver(t, env), Logger: logger(t), Kills: 100, Within: 700 * time.Millisecond,
		Env: []string{"AIRLOCK_HOME=" + env.Home},
	}
	orphans.Run(t)
}
