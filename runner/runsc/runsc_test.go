package runsc_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// version is the module version of gVisor that this Airlock is made for.
const version = "v0.0.0-20260905035102-160fafc42237"

// envRootless is set in a copy of this test that runs as an ordinary user.
const envRootless = "AIRLOCK_TEST_ROOTLESS"

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
	return runner.Image{Name: built.Name, Digest: built.Digest, RootFS: built.RootFS, Args: built.Args, Env: built.Env}
}

func newDriver(t *testing.T, env testenv.Env) *runsc.Driver {
	t.Helper()
	d, err := runsc.New(&runsc.Options{
		Path: env.Runsc, Version: version, Logger: logger(t),
		Unenforced: os.Getenv(envRootless) != "",
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSuite(t *testing.T) {
	env := testenv.Sandbox(t)
	driver := newDriver(t, env)
	suite := runnertest.Suite{
		Driver: driver, Python: image(t, env.Home, "python"), Logger: logger(t),
		Unenforced: driver.Unenforced() != nil,
	}
	suite.Run(t)
}

func TestCheck(t *testing.T) {
	d := newDriver(t, testenv.Sandbox(t))
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRootless runs this package's tests again as a user who owns nothing and
// has no control group.
func TestRootless(t *testing.T) {
	env := testenv.Sandbox(t)
	if os.Geteuid() != 0 {
		t.Skip("is an ordinary user already")
	}
	const nobody = 65534
	dir := t.TempDir()
	program := filepath.Join(dir, "rootless.test")
	copyFile(t, os.Args[0], program)
	for path := dir; path != filepath.Dir(os.TempDir()) && path != "/"; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err != nil {
			t.Fatal(err)
		} else if err := os.Chmod(path, info.Mode()|0o055); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-test.run=^(TestSuite|TestCheck|TestLimitsMissing)$", "-test.v")
	cmd.Dir = mustGetwd(t)
	cmd.Env = append(os.Environ(), envRootless+"=1", "AIRLOCK_HOME="+env.Home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "--- SKIP: TestSuite ") {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
}

func TestLimitsMissing(t *testing.T) {
	env := testenv.Sandbox(t)
	if os.Getenv(envRootless) == "" {
		t.Skip("is for an ordinary user: TestRootless runs it as one")
	}
	d, err := runsc.New(&runsc.Options{Path: env.Runsc, Version: version, Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be enforced") {
		t.Errorf("got %v, want a refusal that says which limits cannot be enforced", err)
	}
}

func TestNewRefuses(t *testing.T) {
	env := testenv.Sandbox(t)
	tests := []struct {
		name string
		opts *runsc.Options
		want string
	}{
		{"no options", nil, "needs a program"},
		{"no program there", &runsc.Options{Path: "/no/such/runsc", Version: version, Logger: logger(t)}, "there is no runsc"},
		{"not a Go program", &runsc.Options{Path: "/bin/sh", Version: version, Logger: logger(t)}, "cannot be identified"},
		{"another version", &runsc.Options{Path: env.Runsc, Version: "v0.0.0-other", Logger: logger(t)}, "is made for v0.0.0-other"},
		{"another Go program", &runsc.Options{Path: os.Args[0], Version: version, Logger: logger(t)}, "(none)"},
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

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}
