package ctrd_test

import (
	"log/slog"
	"testing"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ctrd"
	"github.com/airlock-mcp/airlock/runner/ctrd/ctrdtest"
	"github.com/airlock-mcp/airlock/runner/runnertest"
)

// version is the module version of gVisor that this Airlock is made for.
const version = "v0.0.0-20260905035102-160fafc42237"

func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// image opens a built image as a sandbox needs it.
func image(t *testing.T, home, name string) runner.Image {
	t.Helper()
	built, err := images.Open(home, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { built.Close() })
	return runner.Image{
		Name: built.Name, Digest: built.Digest, RootFS: built.RootFS, Layout: built.Layout, Args: built.Args, Env: built.Env,
	}
}

// options are those of a driver on the daemon.
func options(t *testing.T, d *ctrdtest.Daemon) *ctrd.Options {
	p := ctrdtest.Built(testenv.RepoRoot(t))
	return &ctrd.Options{Address: d.Address, Shim: p.Shim, Runsc: p.Runsc, Version: version, Logger: logger(t)}
}

func newDriver(t *testing.T, d *ctrdtest.Daemon) *ctrd.Driver {
	t.Helper()
	driver, err := ctrd.New(t.Context(), options(t, d))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	})
	return driver
}

func TestCheck(t *testing.T) {
	if err := newDriver(t, ctrdtest.Run(t)).Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSuite(t *testing.T) {
	env := testenv.Sandbox(t)
	driver := newDriver(t, ctrdtest.Run(t))
	suite := runnertest.Suite{
		Driver: driver, Python: image(t, env.Home, "python"), Logger: logger(t),
		Unenforced: driver.Unenforced() != nil,
	}
	suite.Run(t)
}
