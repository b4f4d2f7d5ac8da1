package runsc_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

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
}
