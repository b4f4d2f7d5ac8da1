package runner_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
)

// One run in a fresh sandbox. A real program uses the driver in runner/runsc; this fake
// isolates nothing.
func Example() {
	driver := &runnertest.Fake{Guest: func(_ context.Context, g *runnertest.GuestIO) runner.Exit {
		if !g.Ready() {
			return runner.Exit{Code: 1}
		}
		fmt.Fprint(g.Stdout, "hello from inside")
		return runner.Exit{}
	}}
	if err := runOnce(context.Background(), driver); err != nil {
		fmt.Println(err)
	}
	// Output: exit status 0, stdout "hello from inside"
}

func runOnce(ctx context.Context, driver runner.Driver) error {
	base, err := os.MkdirTemp("/tmp", "airlock-") // short, because sockets lie below
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	sandboxes, err := runner.New(driver, &runner.Options{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), StateDir: filepath.Join(base, "s"), Pool: -1,
	})
	if err != nil {
		return err
	}
	defer sandboxes.Close(ctx)

	sandbox, err := sandboxes.Acquire(ctx, runner.Request{Image: runner.Image{Name: "python"},
		Limits: runner.DefaultLimits()})
	if err != nil {
		return err
	}
	defer sandbox.Close()
	if err := sandbox.Begin(); err != nil {
		return err
	}
	exit, err := sandbox.Wait(ctx)
	if err != nil {
		return err
	}
	if err := sandbox.Drain(ctx); err != nil {
		return err
	}
	fmt.Printf("exit status %d, stdout %q\n", exit.Code, sandbox.Stdout().Head)
	return nil
}
