// Package testenv describes the environment of a test: the repository's root, the corpus
// of real tool lists, and whether real sandboxes were requested.
package testenv

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// Env is what a test with real sandboxes needs.
type Env struct {
	Home  string // an AIRLOCK_HOME whose images are built
	Runsc string // path of the runsc program
}

// WantsSandboxes reports whether tests with real sandboxes are run: AIRLOCK_TEST_SANDBOX is 1.
func WantsSandboxes() bool { return os.Getenv("AIRLOCK_TEST_SANDBOX") == "1" }

// Sandbox returns the environment for tests that start real sandboxes. The
// test is skipped unless AIRLOCK_TEST_SANDBOX=1 asks for it; asked for and
// impossible, it fails. `make test` asks and builds what is missing.
func Sandbox(t testing.TB) Env {
	t.Helper()
	if !WantsSandboxes() {
		t.Skip("starts real sandboxes: run `make test`, or set AIRLOCK_TEST_SANDBOX=1")
	}
	watch(t)
	root := RepoRoot(t)
	env := Env{Home: os.Getenv("AIRLOCK_HOME"), Runsc: filepath.Join(root, "bin", "runsc")}
	if env.Home == "" {
		env.Home = filepath.Join(root, ".airlock")
	}
	for _, path := range []string{env.Runsc, env.Home} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("sandbox tests were asked for, but %v (run `make setup` first)", err)
		}
	}
	return env
}

// hangs is the time after which a test is taken to wait for ever. The other packages still have theirs then. With a
// -timeout above an hour, there is no limit.
const hangs = 15 * time.Minute

// watch ends the process with the stacks of all goroutines if a test hangs.
func watch(t testing.TB) {
	timeout, _ := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration)
	if timeout > time.Hour || timeout == 0 {
		return
	}
	timer := time.AfterFunc(hangs, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("%s has not ended after %v", t.Name(), hangs))
	})
	t.Cleanup(func() { timer.Stop() })
}

// Corpus returns the directory with the corpus of real tool lists, which is beside the
// repository and never copied into it. If it does not exist, the test is skipped, or fails
// if AIRLOCK_CORPUS names it.
func Corpus(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("AIRLOCK_CORPUS"); dir != "" {
		if _, err := os.Stat(dir); err != nil {
			t.Fatalf("AIRLOCK_CORPUS names the corpus of tool lists, but %v", err)
		}
		return dir
	}
	dir := filepath.Join(RepoRoot(t), "..", "shared", "corpus")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs the corpus of tool lists beside the repository: set AIRLOCK_CORPUS to its directory")
	}
	return dir
}

// RepoRoot returns the directory that holds go.mod, looking upwards from the test.
func RepoRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's directory")
		}
		dir = parent
	}
}

// OwnHome is Sandbox for a test that runs Airlock as a whole: with a new state directory with some images, for which
// it sets AIRLOCK_HOME. In a shared one, the agents of one test would guard the configurations of the others.
func OwnHome(t *testing.T, images ...string) Env {
	t.Helper()
	env := Sandbox(t)
	env.Home = NewHome(t, env, images...)
	t.Setenv("AIRLOCK_HOME", env.Home)
	t.Setenv("AIRLOCK_RUNSC", env.Runsc)
	return env
}

// WithoutPool returns a configuration with which no sandbox is kept ready, unless config has a section for sandboxes.
// Filling a pool takes more processor time than most tests that start the program.
func WithoutPool(config string) string {
	if strings.Contains(config, "sandbox:") {
		return config
	}
	return config + "\nsandbox: {pool: 0}\nverify: {pool: 0}\n"
}

// NewHome returns a new state directory with links to images of env, by default all of them. An image comes with those
// that have more packages. `airlock serve` reads every image when it starts, so a test that starts it names the images
// that it uses: "verify" takes longer than the others together. The path is short, since sockets are created below it.
func NewHome(t testing.TB, env Env, images ...string) string {
	t.Helper()
	home, err := os.MkdirTemp("", "alk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	built, linked := filepath.Join(env.Home, "images"), filepath.Join(home, "images")
	if len(images) == 0 {
		err = os.Symlink(built, linked)
	} else {
		err = link(built, linked, images)
	}
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// link makes the directory linked with links to those images of the directory built.
func link(built, linked string, images []string) error {
	entries, err := os.ReadDir(built)
	if err == nil {
		err = os.Mkdir(linked, 0o755)
	}
	for _, entry := range entries {
		if name, _, _ := strings.Cut(entry.Name(), "+"); entry.IsDir() && slices.Contains(images, name) {
			err = errors.Join(err, os.Symlink(filepath.Join(built, entry.Name()), filepath.Join(linked, entry.Name())))
		}
	}
	return err
}
