package ctrd_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/ctrd"
	"github.com/airlock-mcp/airlock/runner/ctrd/ctrdtest"
	"github.com/airlock-mcp/airlock/runner/runnertest"
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
	return runner.Image{
		Name: built.Name, Digest: built.Digest, RootFS: built.RootFS, Layout: built.Layout, Args: built.Args,
		Env: built.Env,
	}
}

// options are those of a driver on the daemon.
func options(t *testing.T, d *ctrdtest.Daemon) *ctrd.Options {
	p := ctrdtest.Built(testenv.RepoRoot(t))
	return &ctrd.Options{Address: d.Address, Shim: p.Shim, Runsc: p.Runsc, Logger: logger(t)}
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

func TestNewRefuses(t *testing.T) {
	sound := options(t, ctrdtest.Run(t))
	tests := []struct {
		name   string
		change func(*ctrd.Options)
		want   string
	}{
		{"no address", func(o *ctrd.Options) { o.Address = "" }, "needs a daemon's address"},
		{"no daemon", func(o *ctrd.Options) { o.Address = "/no/such/socket" }, "connecting to containerd"},
		{"a socket of something else", func(o *ctrd.Options) { o.Address = otherSocket(t) }, "looking at containerd"},
		{"no shim there", func(o *ctrd.Options) { o.Shim = "/no/such/shim" }, "there is no shim"},
		{"another program as shim", func(o *ctrd.Options) { o.Shim = "/bin/sh" }, "the shim at"},
		{"another version", func(o *ctrd.Options) { o.Version = "v0.0.0-other" }, "is made for v0.0.0-other"},
		{"the shim as runsc", func(o *ctrd.Options) { o.Runsc = o.Shim }, "not Airlock's own build"},
		{"no such snapshotter", func(o *ctrd.Options) { o.Snapshotter = "nosuch" },
			"its snapshotter nosuch does not work"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			opts := *sound
			test.change(&opts)
			_, err := ctrd.New(t.Context(), &opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// otherSocket listens and closes each connection.
func otherSocket(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return path
}

// TestImages checks that an image that does not match its digest is refused, that one
// removed from the daemon is imported again, and that a sandbox that did not start leaves
// nothing in the daemon.
func TestImages(t *testing.T) {
	env := testenv.Sandbox(t)
	driver := newDriver(t, ctrdtest.Run(t))
	sound := image(t, env.Home, "python")
	tests := []struct {
		name   string
		change func(*runner.Image)
		want   string // of the error; "" for none
	}{
		{"a changed layer", func(i *runner.Image) { i.Digest, i.Layout = changedLayout(t, *i) }, "importing image"},
		{"as it is", func(*runner.Image) {}, ""},
		{"another digest", func(i *runner.Image) { i.Digest = "sha256:" + strings.Repeat("0", 64) }, "importing image"},
		{"a digest that is none", func(i *runner.Image) { i.Digest = "../../etc/passwd" }, "importing image"},
		{"no layout", func(i *runner.Image) { i.Digest, i.Layout = "sha256:"+strings.Repeat("1", 64), "" },
			"no OCI layout"},
		{"gone from the daemon", func(*runner.Image) { ctrd.RemoveImages(t, driver) }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRunner(t, driver)
			changed := sound
			test.change(&changed)
			s, err := r.Acquire(t.Context(), runner.Request{Image: changed, Limits: runner.DefaultLimits()})
			if err == nil {
				err = s.Close()
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if left := ctrd.Resources(t, driver); len(left) > 0 {
				t.Errorf("containerd still has %q", left)
			}
		})
	}
}

// TestChangedFiles checks that no sandbox starts from files that were changed in the daemon after the
// import, also if another driver imported them (issue 24).
func TestChangedFiles(t *testing.T) {
	env := testenv.Sandbox(t)
	daemon := ctrdtest.Run(t)
	sound := image(t, env.Home, "python")
	first := newDriver(t, daemon)
	acquire := func(driver *ctrd.Driver) error {
		s, err := newRunner(t, driver).Acquire(t.Context(),
			runner.Request{Image: sound, Limits: runner.DefaultLimits()})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if err := acquire(first); err != nil {
		t.Fatal(err)
	}
	var guest string
	for _, layer := range ctrd.Layers(t, first, sound) {
		found, err := filepath.Glob(filepath.Join(layer, "opt", "airlock", "*", "__init__.py"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			guest = found[0]
		}
	}
	whole, err := os.ReadFile(guest)
	if err != nil {
		t.Fatalf("no file of the guest was found: %v", err)
	}
	info, err := os.Stat(guest)
	if err != nil {
		t.Fatal(err)
	}
	write := func(content []byte) {
		t.Helper()
		if err := errors.Join(os.WriteFile(guest, content, 0o644),
			os.Chtimes(guest, info.ModTime(), info.ModTime())); err != nil {
			t.Fatal(err)
		}
	}
	changed := bytes.Clone(whole)
	changed[len(changed)-1] ^= 1 // the size and the time of modification stay
	write(changed)
	for name, driver := range map[string]*ctrd.Driver{"that has started one": first,
		"that is new": newDriver(t, daemon)} {
		if err := acquire(driver); err == nil || !strings.Contains(err.Error(), "was changed") {
			t.Errorf("a driver %s: got %v, want an error about the changed file", name, err)
		}
		if left := ctrd.Resources(t, driver); len(left) > 0 {
			t.Errorf("containerd still has %q", left)
		}
	}
	write(whole)
	if err := acquire(first); err != nil {
		t.Errorf("after the file was restored: %v", err)
	}
}

// TestFormerImages wants the former build of an image to go when it is imported.
func TestFormerImages(t *testing.T) {
	env := testenv.Sandbox(t)
	daemon := ctrdtest.Run(t)
	built := image(t, env.Home, "python")
	for _, round := range []string{"first", "second"} {
		driver := newDriver(t, daemon)
		if round == "second" {
			ctrd.AddFormer(t, driver, "airlock/python@sha256:"+strings.Repeat("0", 64))
		}
		s, err := newRunner(t, driver).Acquire(t.Context(),
			runner.Request{Image: built, Limits: runner.DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := ctrd.Images(t, driver); len(got) != 1 || got[0] != "airlock/python@"+built.Digest {
			t.Errorf("%s: got %q, want the one that is in use", round, got)
		}
	}
}

// changedLayout copies the image's layout and changes one byte in its last layer, so that
// the manifest still matches the digest.
func changedLayout(t *testing.T, of runner.Image) (digest, layout string) {
	t.Helper()
	layout = t.TempDir()
	if err := os.CopyFS(layout, os.DirFS(of.Layout)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(layout, "blobs", "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < 64<<10 {
			continue // the manifest and the configuration
		}
		path := filepath.Join(layout, "blobs", "sha256", entry.Name())
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteAt([]byte("changed"), 600)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return of.Digest, layout
}

// shortDir is a directory with a short path, which sockets need.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "airlock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newRunner(t *testing.T, driver runner.Driver) *runner.Runner {
	t.Helper()
	r, err := runner.New(driver, &runner.Options{Logger: logger(t), StateDir: filepath.Join(shortDir(t), "s"),
		Pool: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestGivenUpStart gives up starting at several moments and wants nothing to be left.
func TestGivenUpStart(t *testing.T) {
	env := testenv.Sandbox(t)
	driver := newDriver(t, ctrdtest.Run(t))
	r := newRunner(t, driver)
	req := runner.Request{Image: image(t, env.Home, "python"), Limits: runner.DefaultLimits()}
	first, err := r.Acquire(t.Context(), req) // imports the image
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	givenUp := 0
	for timeout := time.Millisecond; timeout < 400*time.Millisecond; timeout *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		s, err := r.Acquire(ctx, req)
		cancel()
		if err != nil {
			givenUp++
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left := ctrd.Resources(t, driver); len(left) > 0 {
			t.Errorf("after %v: containerd still has %q", timeout, left)
		}
	}
	if givenUp == 0 {
		t.Error("no start was given up")
	}
}

// TestRestartedHost finds in the daemon what a sandbox had before the host was
// started anew.
func TestRestartedHost(t *testing.T) {
	daemon := ctrdtest.Run(t)
	driver := newDriver(t, daemon)
	ctrd.LeaveFormer(t, driver, "sb-former")
	if left := ctrd.Resources(t, driver); len(left) != 2 {
		t.Fatalf("got %q, want a snapshot and a lease", left)
	}
	newDriver(t, daemon)
	if left := ctrd.Resources(t, driver); len(left) > 0 {
		t.Errorf("containerd still has %q", left)
	}
}

// TestLostDaemon kills the daemon of a running sandbox: the sandbox can still be killed,
// and Close returns an error because the daemon's resources could not be removed.
func TestLostDaemon(t *testing.T) {
	env := testenv.Sandbox(t)
	daemon, err := ctrdtest.Start(ctrdtest.Built(testenv.RepoRoot(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := daemon.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := runner.New(newDriver(t, daemon), &runner.Options{Logger: logger(t),
		StateDir: filepath.Join(shortDir(t), "s"), Pool: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Acquire(t.Context(), runner.Request{Image: image(t, env.Home, "python"),
		Limits: runner.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if exit, err := s.Wait(ctx); err != nil || exit.Signal != 9 {
		t.Errorf("exit: got %+v, %v, want signal 9", exit, err)
	}
	if err := s.Close(); err == nil {
		t.Error("closing: got nil, want an error, for the daemon still has a container")
	}
	if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
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
