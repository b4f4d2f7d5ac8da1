package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runsc"
	"github.com/airlock-mcp/airlock/verify"
)

// proofs are requests that an engine decides at once, so that the overhead of a request is
// measured.
var proofs = []struct {
	name    string
	request verify.Request
}{
	{"Z3", verify.Request{Engine: "logic", Arguments: json.RawMessage(
		`{"query":"(AND (GT x 5) (LT y 10) (EQ (PLUS x y) 12))"}`)}},
	{"SymPy", verify.Request{Engine: "math", Arguments: json.RawMessage(
		`{"expression":"(a + b)**3 = a**3 + 3*a**2*b + 3*a*b**2 + b**3"}`)}},
}

// measureVerdicts takes verdicts from fresh sandboxes, in turn with the same engine of
// the same image in a plain process.
func measureVerdicts(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	image, err := images.Open(b.home, images.Verifier)
	if err != nil {
		return err
	}
	undo.Add(image.Close)
	service, err := b.openVerifications(image, &undo)
	if err != nil {
		return err
	}
	plain, err := newPlainEngine(image.RootFS)
	if err != nil {
		return err
	}
	var ways []way
	for _, p := range proofs {
		ways = append(ways, way{name: p.name, take: fromSandbox(service, p.request)},
			way{p.name + " process", plain.take(p.request), seldom})
	}
	taken, err := inTurn(ctx, b.rounds, roundPause, ways...)
	if err != nil {
		return err
	}
	for _, p := range proofs {
		process := taken[p.name+" process"]
		b.table.add(newRow("a "+p.name+" verdict in a separate plain Python process", "ms", process),
			newRow("the same from a fresh sandbox", "ms", taken[p.name]).aims("≤ 25").times(process, "the process"))
	}
	got, err := loops(ctx, fromSandbox(service, proofs[0].request))
	if err != nil {
		return err
	}
	b.table.add(newRates("Z3 verdicts from fresh sandboxes, four asked for at a time", "/s",
		sample{float64(len(got)) / counted.Seconds()}))
	return nil
}

func (b *bench) openVerifications(image images.Image, undo *cleanup.Stack) (*verify.Service, error) {
	logger := slog.New(slog.DiscardHandler)
	driver, err := runsc.New(&runsc.Options{Path: b.bin("runsc"), Logger: logger, Unenforced: true})
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { driver.Close(); return nil })
	sandboxes, err := runner.New(driver, &runner.Options{
		Logger: logger, StateDir: store.Run(b.home), MaxSandboxes: asking, Pool: 1,
	})
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { return sandboxes.Close(context.Background()) })
	service, err := verify.New(sandboxes, runner.Image{
		Name: image.Name, Digest: image.Digest, RootFS: image.RootFS, Layout: image.Layout, Args: image.Args,
		Env: image.Env,
	}, &verify.Options{Logger: logger})
	if err != nil {
		return nil, err
	}
	undo.Add(service.Close)
	return service, nil
}

// fromSandbox asks the service; anything but a proof is an error.
func fromSandbox(service *verify.Service, request verify.Request) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		return timed(func() error {
			verdict, err := service.Verify(ctx, request)
			if err == nil && verdict.Status != verify.Verified {
				err = fmt.Errorf("got %s: %s", verdict.Status, verdict.Reason)
			}
			return err
		})
	}
}

// plainEngine starts the image's interpreter with its engines, without any sandbox.
type plainEngine struct{ loader, rootFS string }

func newPlainEngine(rootFS string) (plainEngine, error) {
	found, err := filepath.Glob(filepath.Join(rootFS, "usr/lib/*-linux-gnu/ld-linux-*.so.*"))
	if err != nil || len(found) != 1 {
		return plainEngine{}, fmt.Errorf("want one program loader in %q, got %q", rootFS, found)
	}
	return plainEngine{found[0], rootFS}, nil
}

func (p plainEngine) take(request verify.Request) func(context.Context) (sample, error) {
	input, err := json.Marshal(map[string]any{"engine": request.Engine, "arguments": request.Arguments})
	return func(ctx context.Context) (sample, error) {
		return timed(func() error {
			if err != nil {
				return err
			}
			cmd := exec.CommandContext(ctx, p.loader, "--library-path", filepath.Dir(p.loader),
				filepath.Join(p.rootFS, "usr/bin/python3"), "-s", "-B", "-m", "qwed_sdk.engine")
			cmd.Env = []string{"PYTHONHOME=" + filepath.Join(p.rootFS, "usr"),
				"PYTHONPATH=" + filepath.Join(p.rootFS, "usr/lib/python3/dist-packages"), "LC_ALL=C.UTF-8"}
			cmd.Stdin = bytes.NewReader(input)
			out, err := cmd.Output()
			if err == nil && !bytes.Contains(out, []byte(`"status": "VERIFIED"`)) {
				err = fmt.Errorf("got %.300s", out)
			}
			return err
		})
	}
}
