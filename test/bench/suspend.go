package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/wire"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// suspendRounds is how many runs of each kind are suspended.
const suspendRounds = 60

// waiting are programs that wait for an answer of the host. large holds 50 MB of data that does not compress.
var waiting = []struct{ language, name, code string }{
	{"python", "Python", "from client import search_tools\nawait search_tools('x')\nresult = 1"},
	{"node", "Node", `import { searchTools } from "/workspace/client/index.js";
await searchTools({ query: "x" });
globalThis.result = 1;`},
	{"python", "Python with 50 MB of random data",
		"import os\nfrom client import search_tools\nd = os.urandom(50 << 20)\nawait search_tools('x')\nresult = len(d)"},
}

// measureSuspended suspends sandboxes whose program waits, and continues them: the time until the sandbox is freed, the
// time from the answer to the end of the program, and the size of the state on disk.
func measureSuspended(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	logger := slog.New(slog.DiscardHandler)
	driver, err := runsc.New(&runsc.Options{Path: b.bin("runsc"), Logger: logger, Unenforced: true})
	if err != nil {
		return err
	}
	undo.Add(func() error { driver.Close(); return nil })
	dir := filepath.Join(b.home, "suspended")
	sandboxes, err := runner.New(driver, &runner.Options{
		Logger: logger, StateDir: store.Run(b.home), SuspendDir: dir, Pool: 1,
	})
	if err != nil {
		return err
	}
	undo.Add(func() error { return sandboxes.Close(context.Background()) })
	for _, program := range waiting {
		image, err := images.Open(b.home, program.language)
		if err != nil {
			return err
		}
		undo.Add(image.Close)
		request := runner.Request{Limits: runner.DefaultLimits(), Image: runner.Image{
			Name: image.Name, Digest: image.Digest, RootFS: image.RootFS, Layout: image.Layout, Args: image.Args,
			Env: image.Env,
		}}
		var taken suspensions
		for range min(b.rounds, suspendRounds) {
			if err := taken.add(ctx, sandboxes, request, program.language, program.code, dir); err != nil {
				return fmt.Errorf("%s: %w", program.name, err)
			}
			if err := rest(ctx, roundPause); err != nil {
				return err
			}
		}
		b.table.add(newRow("suspending a run, "+program.name, "ms", taken.suspend),
			newRow("from its answer to its end, suspended", "ms", taken.resume).aims("≤ 150"),
			newRow("its state on disk", "MB", taken.size).aims("≤ 1"))
	}
	return nil
}

// suspensions are the measurements of runs that were suspended.
type suspensions struct{ suspend, resume, size sample }

// add suspends one run.
func (s *suspensions) add(ctx context.Context, sandboxes *runner.Runner, request runner.Request, language, code,
	dir string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sandbox, err := sandboxes.Acquire(ctx, request)
	if err != nil {
		return err
	}
	defer sandbox.Close()
	asked, answer, ended := make(chan struct{}), make(chan struct{}), make(chan string, 1)
	talk := wire.NewConversation(func(ctx context.Context, call wire.Request) (any, error) {
		switch call.Method {
		case "run/start":
			return map[string]string{"language": language, "code": code}, nil
		case "catalog/search":
			close(asked)
			select {
			case <-answer:
			case <-ctx.Done():
			}
			return map[string]any{"tools": []string{}, "total": 0}, nil
		case "run/finish":
			ended <- string(call.Params)
		}
		return map[string]string{}, nil
	})
	go func() { _ = talk.Serve(ctx, sandbox.Listener()) }()
	if err := sandbox.Go(); err != nil {
		return err
	}
	select {
	case <-asked:
	case end := <-ended:
		return fmt.Errorf("the program ended with %s", end)
	case <-ctx.Done():
		return ctx.Err()
	}
	var held *wire.Held
	var began time.Time
	for { // until the program waits for nothing but the answer
		if err := rest(ctx, settling/100); err != nil {
			return err
		}
		began = time.Now()
		if err := sandbox.Pause(ctx); err != nil {
			return err
		}
		if held, _, err = talk.Hold(ctx); err == nil {
			break
		}
		if err := sandbox.Resume(ctx); err != nil {
			return err
		}
	}
	if err := sandboxes.Suspend(ctx, sandbox, true); err != nil {
		return err
	}
	s.suspend = append(s.suspend, milliseconds(time.Since(began)))
	held.Detach()
	saved, ok := sandboxes.Saved(sandbox)
	if !ok {
		return errors.New("the state is not on disk")
	}
	state, err := os.Stat(filepath.Join(dir, saved.State))
	if err != nil {
		return err
	}
	s.size = append(s.size, float64(state.Size())/1e6)
	began = time.Now()
	if err := sandboxes.Continue(ctx, sandbox, func() error { return nil }); err != nil {
		return err
	}
	close(answer)
	select {
	case <-ended:
		s.resume = append(s.resume, milliseconds(time.Since(began)))
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
