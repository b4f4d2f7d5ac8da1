package runsc_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
)

// A root file system that is changed while Airlock runs starts no sandbox any more, neither
// a new one nor one from a template (issue 24). Its size and its time of modification are kept.
func TestChangedFileSystem(t *testing.T) {
	env := testenv.Sandbox(t)
	python := image(t, env.Home, "python")
	dir, err := os.MkdirTemp("/tmp", "airlock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	copied := filepath.Join(dir, "rootfs")
	if out, err := exec.Command("cp", "-a", python.RootFS, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	python.RootFS = copied
	sandboxes, err := runner.New(newDriver(t, env),
		&runner.Options{Logger: logger(t), StateDir: filepath.Join(dir, "state"), MaxSandboxes: 2, Pool: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandboxes.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	start := func(memory int64) error { // other limits need another template
		limits := runner.DefaultLimits()
		limits.Memory = memory
		sandbox, err := sandboxes.Acquire(t.Context(), runner.Request{Image: python, Limits: limits})
		if err != nil {
			return err
		}
		return sandbox.Close()
	}
	for range 4 { // the last ones start from a template
		if err := start(256 << 20); err != nil {
			t.Fatal(err)
		}
	}
	path := copied + ".erofs"
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(made, []byte("import"))
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteAt([]byte(text), int64(at))
		if err := errors.Join(err, file.Close(), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
			t.Fatal(err)
		}
	}
	write("export")
	for name, memory := range map[string]int64{"from the template": 256 << 20, "as a new sandbox": 300 << 20} {
		var changed *images.FileSystemError
		if err := start(memory); !errors.As(err, &changed) {
			t.Errorf("%s: got %v, want that the file system was changed", name, err)
		}
	}
	write("import")
	if err := start(256 << 20); err != nil {
		t.Errorf("with its bytes restored: got %v, want nil", err)
	}

	// Another file and a link take its place.
	patched, original := filepath.Join(dir, "patched"), filepath.Join(dir, "original")
	changed := bytes.Clone(made)
	copy(changed[at:], "export")
	if err := errors.Join(os.WriteFile(patched, changed, info.Mode()),
		os.Chtimes(patched, info.ModTime(), info.ModTime()), os.Rename(path, original)); err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(path + ".sum")
	if err != nil {
		t.Fatal(err)
	}
	digest := func(text string) error {
		return errors.Join(os.Remove(path+".sum"), os.WriteFile(path+".sum", []byte(text), 0o444))
	}
	sum := blake3.Sum256(changed)
	for name, replace := range map[string]func() error{
		"a file": func() error { return os.Link(patched, path) },
		"a link": func() error { return os.Symlink(patched, path) },
		"a file with its digest": func() error {
			return errors.Join(os.Link(patched, path), digest("blake3:"+hex.EncodeToString(sum[:])))
		},
	} {
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		for _, memory := range []int64{256 << 20, 320 << 20} {
			if err := start(memory); err == nil {
				t.Errorf("a sandbox started from %s in place of the file system", name)
			}
		}
		if err := errors.Join(os.Remove(path), digest(string(recorded))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(original, path); err != nil {
		t.Fatal(err)
	}
	if err := start(256 << 20); err != nil {
		t.Errorf("with its file restored: got %v, want nil", err)
	}
}
