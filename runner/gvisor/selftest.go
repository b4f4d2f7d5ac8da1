package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/runner"
)

// selfTestPatience bounds the self-test.
const selfTestPatience = 20 * time.Second

// SelfTest proves that start starts sandboxes: it runs the runsc program itself,
// which is statically linked, in an otherwise empty one, and wants to hear from it.
func SelfTest(ctx context.Context, runsc string, start func(context.Context, runner.Spec) (runner.Process, error)) (err error) {
	ctx, cancel := context.WithTimeout(ctx, selfTestPatience)
	defer cancel()
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	dir, err := os.MkdirTemp("", "airlock-check-")
	if err != nil {
		return err
	}
	undo.Add(func() error { return os.RemoveAll(dir) })
	spec, err := testSpec(dir, runsc)
	if err != nil {
		return fmt.Errorf("preparing a test sandbox: %w", err)
	}
	p, err := start(ctx, spec)
	if err != nil {
		return fmt.Errorf("starting a test sandbox: %w", err)
	}
	undo.Add(p.Close)
	return hear(ctx, p)
}

// testSpec makes a sandbox whose image is one program.
func testSpec(dir, runsc string) (runner.Spec, error) {
	// The sandbox's own user passes through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return runner.Spec{}, err
	}
	spec := runner.Spec{
		ID:        "check-" + strings.ToLower(strings.TrimPrefix(filepath.Base(dir), "airlock-check-")),
		Image:     runner.Image{Name: "check", RootFS: filepath.Join(dir, "root"), Args: []string{"/runsc", "--version"}},
		Limits:    runner.DefaultLimits(),
		SocketDir: filepath.Join(dir, "open", "run"),
		StateDir:  filepath.Join(dir, "state"),
	}
	root := spec.Image.RootFS
	paths := []string{spec.SocketDir, spec.StateDir}
	for _, mountPoint := range []string{"proc", "sys", "dev", "tmp", "workspace/client", "run/airlock", "opt/airlock/client"} {
		paths = append(paths, filepath.Join(root, mountPoint))
	}
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return spec, err
		}
	}
	return spec, copyFile(runsc, filepath.Join(root, "runsc"))
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// hear wants the test sandbox to print the version. How it ends is its driver's
// to know: one that has to ask others may be too late for so short a life.
func hear(ctx context.Context, p runner.Process) error {
	output := make(chan string, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(p.Stdout(), 4096))
		if err != nil {
			text = nil
		}
		output <- string(text)
	}()
	exit, err := p.Wait(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("running a test sandbox: %w", err)
	}
	if text := <-output; !strings.HasPrefix(text, "runsc version ") {
		return errors.Join(fmt.Errorf("running a test sandbox: it ended with %+v and wrote %q", exit, text), err)
	}
	return nil
}
