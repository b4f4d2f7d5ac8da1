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

// envPlace names, in a copy of this test, the place that it runs in.
const envPlace = "AIRLOCK_TEST_PLACE"

// Where else Airlock may run.
const (
	placeRootless     = "as an ordinary user without a control group"
	placeContainer    = "as root of a user namespace"
	placeGroups       = "as root with supplementary groups"
	placeNoNamespaces = "where no more user namespaces are allowed"
	placeOnlyRoot     = "in a user namespace with one user"
)

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
	return runner.Image{Name: built.Name, Digest: built.Digest, RootFS: built.RootFS, Args: built.Args, Env: built.Env,
		Fresh: built.Fresh}
}

func newDriver(t *testing.T, env testenv.Env) *runsc.Driver {
	t.Helper()
	d, err := runsc.New(&runsc.Options{
		Path: env.Runsc, Logger: logger(t),
		Unenforced: os.Getenv(envPlace) == placeRootless,
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

// TestElsewhere runs this package's tests again in other places than the one
// `make test` is in.
func TestElsewhere(t *testing.T) {
	env := testenv.Sandbox(t)
	if os.Geteuid() != 0 || os.Getenv(envPlace) != "" {
		t.Skip("needs root to go to these places, and goes there once")
	}
	const nobody = 65534
	everyone := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 16}}
	inside := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: everyone, GidMappings: everyone}
	onlyRoot := []syscall.SysProcIDMap{{ContainerID: 0, HostID: nobody, Size: 1}}
	places := []struct {
		name, run string
		attr      *syscall.SysProcAttr
		before    string // a shell command
	}{
		{
			name: placeRootless, run: "TestSuite|TestCheck|TestPlace",
			attr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}},
		},
		{name: placeContainer, run: "TestSuite|TestCheck", attr: inside},
		// As root has them after a login, and in a Pod.
		{name: placeGroups, run: "TestProgramHasPipes",
			attr: &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{0, 27}}}},
		{name: placeNoNamespaces, run: "TestPlace", attr: inside,
			before: "echo 0 > /proc/sys/user/max_user_namespaces; "},
		{
			name: placeOnlyRoot, run: "TestPlace",
			attr: &syscall.SysProcAttr{
				Cloneflags: syscall.CLONE_NEWUSER, UidMappings: onlyRoot, GidMappings: onlyRoot,
				Credential: &syscall.Credential{Uid: 0, Gid: 0},
			},
		},
	}
	program := everyonesCopy(t, os.Args[0])
	for _, place := range places {
		t.Run(place.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", place.before+`exec "$0" "$@"`, program, "-test.run=^("+place.run+")$",
				"-test.v")
			cmd.Dir = filepath.Join(testenv.RepoRoot(t), "runner", "runsc")
			cmd.Env = append(os.Environ(), envPlace+"="+place.name, "AIRLOCK_HOME="+env.Home)
			cmd.SysProcAttr = place.attr
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: ") ||
				strings.Contains(string(out), "\n--- SKIP: ") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestPlace wants what each of the other places is refused.
func TestPlace(t *testing.T) {
	refusal, ok := map[string]string{
		placeRootless:     "cannot be enforced",
		placeNoNamespaces: "does not let this user (0) make namespaces",
		placeOnlyRoot:     "has no user but root",
	}[os.Getenv(envPlace)]
	if !ok {
		t.Skip("is for other places: TestElsewhere runs it there")
	}
	d, err := runsc.New(&runsc.Options{Path: testenv.Sandbox(t).Runsc, Logger: logger(t)})
	if err == nil {
		err = d.Check(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("got %v, want a refusal that says %q", err, refusal)
	}
}

// everyonesCopy copies a file to where every user can run it.
func everyonesCopy(t *testing.T, from string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "airlock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, filepath.Base(from))
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestNewRefuses(t *testing.T) {
	env := testenv.Sandbox(t)
	tests := []struct {
		name string
		opts *runsc.Options
		want string
	}{
		{"no options", nil, "needs a program"},
		{"no program there", &runsc.Options{Path: "/no/such/runsc", Logger: logger(t)}, "there is no runsc"},
		{"not a Go program", &runsc.Options{Path: "/bin/sh", Logger: logger(t)}, "cannot be identified"},
		{"another version", &runsc.Options{Path: env.Runsc, Version: "v0.0.0-other", Logger: logger(t)},
			"is made for v0.0.0-other"},
		{"another Go program", &runsc.Options{Path: os.Args[0], Logger: logger(t)}, "(none)"},
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
