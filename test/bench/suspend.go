package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

// waits is a program that waits for an answer of the host.
type waits struct {
	language, name, code string
	fresh                bool // its sandbox is started from the beginning, also if the image's are not
}

const (
	pythonWaits = "import os\nfrom client import search_tools\nd = os.urandom(%d << 20)\nawait search_tools('x')\n" +
		"result = len(d)"
	nodeWaits = `import { searchTools } from "/workspace/client/index.js";
await searchTools({ query: "x" });
globalThis.result = 1;`
)

// waiting are the programs that are suspended. Random data does not compress.
var waiting = []waits{
	{"python", "Python", fmt.Sprintf(pythonWaits, 0), false},
	{"node", "Node", nodeWaits, false},
	{"node", "Node from the beginning", nodeWaits, true},
	{"python", "Python with 50 MB of random data", fmt.Sprintf(pythonWaits, 50), false},
	{"python", "Python with 100 MB of random data", fmt.Sprintf(pythonWaits, 100), false},
}

// parkedRuns is how many runs are suspended at once, with at least 60 rounds.
const parkedRuns = 1000

// measureSuspended suspends sandboxes whose program waits, and continues them: the time until the sandbox is freed, the
// time from the answer to the end of the program, and the size of the state on disk. In turn with them, the same
// program runs in a sandbox that is started for it.
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
	open := func(pool int) (*runner.Runner, error) {
		sandboxes, err := runner.New(driver, &runner.Options{
			Logger: logger, StateDir: store.Run(b.home), SuspendDir: dir, SuspendSize: 4 << 30, Pool: pool,
		})
		if err == nil {
			undo.Add(func() error { return sandboxes.Close(context.Background()) })
		}
		return sandboxes, err
	}
	pooled, err := open(1)
	if err != nil {
		return err
	}
	alone, err := open(-1)
	if err != nil {
		return err
	}
	for _, program := range waiting {
		request, err := requestFor(b, program.language, &undo)
		if err != nil {
			return err
		}
		sandboxes := pooled
		if program.fresh {
			sandboxes = alone
		}
		var taken suspensions
		for range min(b.rounds, suspendRounds) {
			err := taken.add(ctx, sandboxes, request, program, dir)
			if err == nil {
				err = rest(ctx, roundPause)
			}
			if err == nil {
				err = taken.addFresh(ctx, alone, request, program)
			}
			if err == nil {
				err = rest(ctx, roundPause)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", program.name, err)
			}
		}
		size := newRow("its state on disk", "MB", taken.size)
		if !strings.Contains(program.name, "MB") {
			size = size.aims("≤ 1")
		}
		b.table.add(newRow("suspending a run, "+program.name, "ms", taken.suspend),
			newRow("from its answer to its end, suspended", "ms", taken.resume).aims("≤ 150").times(
				taken.fresh, "the program in a fresh sandbox"), size)
	}
	for _, program := range waiting[:2] {
		if err := measureParked(ctx, b, pooled, program, dir, &undo); err != nil {
			return fmt.Errorf("%s, many: %w", program.name, err)
		}
	}
	return nil
}

// requestFor returns the request for a sandbox of a language.
func requestFor(b *bench, language string, undo *cleanup.Stack) (runner.Request, error) {
	image, err := images.Open(b.home, language)
	if err != nil {
		return runner.Request{}, err
	}
	undo.Add(image.Close)
	return runner.Request{Limits: runner.DefaultLimits(), Image: runner.Image{
		Name: image.Name, Digest: image.Digest, RootFS: image.RootFS, Layout: image.Layout, Args: image.Args,
		Env: image.Env, Fresh: image.Fresh,
	}}, nil
}

// measureParked suspends many runs, and measures what they take on disk, and in the memory of this process.
func measureParked(ctx context.Context, b *bench, sandboxes *runner.Runner, program waits, dir string,
	undo *cleanup.Stack) error {
	request, err := requestFor(b, program.language, undo)
	if err != nil {
		return err
	}
	number := min(parkedRuns, b.rounds*parkedRuns/suspendRounds)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range number {
		request.Caller = fmt.Sprint(i % 10)
		p, err := park(ctx, sandboxes, request, program)
		if err != nil {
			return err
		}
		defer p.close()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	var disk int64
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		disk += info.Size()
	}
	b.table.add(
		newRow(fmt.Sprintf("%d suspended runs on disk, %s", number, program.name), "MB", sample{float64(disk) / 1e6}).
			aims("< 1000 for 1,000"),
		newRow("memory of each of them", "kB",
			sample{(float64(after.HeapInuse) - float64(before.HeapInuse)) / 1e3 / float64(number)}))
	return nil
}

// suspensions are the measurements of runs that were suspended.
type suspensions struct{ suspend, resume, size, fresh sample }

// add suspends one run.
func (s *suspensions) add(ctx context.Context, sandboxes *runner.Runner, request runner.Request, program waits,
	dir string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p, err := park(ctx, sandboxes, request, program)
	if err != nil {
		return err
	}
	defer p.close()
	s.suspend = append(s.suspend, milliseconds(p.took))
	saved, ok := sandboxes.Saved(p.sandbox)
	if !ok {
		return errors.New("the state is not on disk")
	}
	state, err := os.Stat(filepath.Join(dir, saved.State))
	if err != nil {
		return err
	}
	s.size = append(s.size, float64(state.Size())/1e6)
	began := time.Now()
	slot, err := sandboxes.Slot(ctx, p.sandbox)
	if err != nil {
		return err
	}
	if err := sandboxes.Continue(ctx, p.sandbox, slot, func() error { return nil }); err != nil {
		return err
	}
	close(p.answer)
	select {
	case <-p.ended:
		s.resume = append(s.resume, milliseconds(time.Since(began)))
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// addFresh runs the program in a sandbox that is started for it, with its answer at hand.
func (s *suspensions) addFresh(ctx context.Context, sandboxes *runner.Runner, request runner.Request,
	program waits) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	began := time.Now()
	p, err := launch(ctx, sandboxes, request, program)
	if err != nil {
		return err
	}
	defer p.close()
	close(p.answer)
	select {
	case <-p.ended:
		s.fresh = append(s.fresh, milliseconds(time.Since(began)))
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// suspendedRun is a run that is suspended, or will be.
type suspendedRun struct {
	sandbox *runner.Sandbox
	talk    *wire.Conversation
	took    time.Duration // to suspend it
	asked   chan struct{} // closed when the program waits for an answer
	answer  chan struct{} // closed when the host answers
	ended   chan string   // the program's end
	close   func()
}

// launch starts a program.
func launch(ctx context.Context, sandboxes *runner.Runner, request runner.Request, program waits) (*suspendedRun,
	error) {
	sandbox, err := sandboxes.Acquire(ctx, request)
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(ctx)
	p := &suspendedRun{sandbox: sandbox, asked: make(chan struct{}), answer: make(chan struct{}),
		ended: make(chan string, 1)}
	p.close = func() {
		stop()
		_ = sandbox.Close() // the runner reports what is left
	}
	p.talk = wire.NewConversation(func(ctx context.Context, call wire.Request) (any, error) {
		switch call.Method {
		case "run/start":
			return map[string]string{"language": program.language, "code": program.code}, nil
		case "catalog/search":
			close(p.asked)
			select {
			case <-p.answer:
			case <-ctx.Done():
			}
			return map[string]any{"tools": []string{}, "total": 0}, nil
		case "run/finish":
			p.ended <- string(call.Params)
		}
		return map[string]string{}, nil
	})
	go func() { _ = p.talk.Serve(serving, sandbox.Listener()) }()
	if err := sandbox.Begin(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// park starts a program and suspends it when it waits.
func park(ctx context.Context, sandboxes *runner.Runner, request runner.Request, program waits) (_ *suspendedRun,
	err error) {
	p, err := launch(ctx, sandboxes, request, program)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	select {
	case <-p.asked:
	case end := <-p.ended:
		return nil, fmt.Errorf("the program ended with %s", end)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for { // until the program waits for nothing but the answer
		if err := rest(ctx, settling/100); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := p.sandbox.Pause(ctx); err != nil {
			return nil, err
		}
		if held, _, err := p.talk.Hold(ctx); err == nil {
			err = sandboxes.Suspend(ctx, p.sandbox, true)
			p.took = time.Since(began)
			held.Detach()
			return p, err
		}
		if err := p.sandbox.Resume(ctx); err != nil {
			return nil, err
		}
	}
}
