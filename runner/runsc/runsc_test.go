package runsc_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// version is the module version of gVisor that this Airlock is made for.
const version = "v0.0.0-20260905035102-160fafc42237"

func newDriver(t *testing.T, env testenv.Env) *runsc.Driver {
	t.Helper()
	d, err := runsc.New(&runsc.Options{Path: env.Runsc, Version: version, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSuite(t *testing.T) {
	env := testenv.Sandbox(t)
	suite := runnertest.Suite{
		Driver: newDriver(t, env),
		Python: runner.Image{Name: "python", Digest: "sha256:test", RootFS: filepath.Join(env.Home, "images", "python", "rootfs"), Env: []string{"PATH=/usr/bin:/bin", "HOME=/workspace"}},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	suite.Run(t)
}

func TestCheck(t *testing.T) {
	d := newDriver(t, testenv.Sandbox(t))
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	env := testenv.Sandbox(t)
	logger := slog.New(slog.DiscardHandler)
	tests := []struct {
		name string
		opts *runsc.Options
		want string
	}{
		{"no options", nil, "needs a program"},
		{"no program there", &runsc.Options{Path: "/no/such/runsc", Version: version, Logger: logger}, "there is no runsc"},
		{"not a Go program", &runsc.Options{Path: "/bin/sh", Version: version, Logger: logger}, "cannot be identified"},
		{"another version", &runsc.Options{Path: env.Runsc, Version: "v0.0.0-other", Logger: logger}, "is made for v0.0.0-other"},
		{"another Go program", &runsc.Options{Path: os.Args[0], Version: version, Logger: logger}, "(none)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := runsc.New(test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
