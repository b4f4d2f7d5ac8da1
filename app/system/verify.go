package system

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/verify"
)

// Verifier verifies claims and programs. It opens the image with the engines and a separate runner
// at the first request. The runner is separate so that a run that waits for a verdict cannot
// deadlock on the sandbox that it holds. Its methods are safe for concurrent use.
type Verifier struct {
	system *System

	mu      sync.Mutex
	service *verify.Service // nil until the first request
	image   string          // of the service: NAME@DIGEST
	undo    cleanup.Stack
	closed  bool
}

// Verify returns the verifier, which can be used until the system is closed.
func (s *System) Verify() *Verifier { return s.verifier }

// Verify asks one engine, like verify.Service. If the image is not built, the error has a hint.
// Requests after the image was built succeed.
func (v *Verifier) Verify(ctx context.Context, r verify.Request) (verify.Verdict, error) {
	service, err := v.open()
	if err != nil {
		return verify.Verdict{}, err
	}
	return service.Verify(ctx, r)
}

// Warm prepares the service in the background for the first request. It returns an error if the
// service cannot be opened.
func (v *Verifier) Warm() error {
	service, err := v.open()
	if err != nil {
		return err
	}
	service.Warm()
	return nil
}

// imageName returns the name of the image with the engines, or "" before the first request.
func (v *Verifier) imageName() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.image
}

func (v *Verifier) open() (_ *verify.Service, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.closed:
		return nil, verify.ErrClosed
	case v.service != nil:
		return v.service, nil
	}
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	image, err := openImage(v.system.directories.Home, images.Verifier, images.Extra{}, &undo)
	if errors.Is(err, images.ErrNotBuilt) || errors.Is(err, images.ErrStale) {
		return nil, &setup.Error{Err: err, Advice: "run `airlock images build verify`"}
	}
	if err != nil {
		return nil, setup.Advise(err)
	}
	sandboxes, err := v.openRunner(&undo)
	if err != nil {
		return nil, setup.Advise(err)
	}
	c := v.system.config.Verify
	service, err := verify.New(sandboxes, image, &verify.Options{Logger: v.system.opts.Logger, Timeout: c.Timeout,
		Memory: c.Memory})
	if err != nil {
		return nil, err
	}
	undo.Add(service.Close)
	v.service, v.image = service, image.Name+"@"+image.Digest
	v.undo.Add(undo.Take().Run)
	return service, nil
}

func (v *Verifier) openRunner(undo *cleanup.Stack) (*runner.Runner, error) {
	ctx, c, logger := context.Background(), v.system.config, v.system.opts.Logger
	driver, err := newDriver(ctx, c, logger)
	if err != nil {
		return nil, err
	}
	const none = -1 // for the runner, 0 means the default
	opts := &runner.Options{
		Logger: logger, StateDir: store.Run(v.system.directories.Home), MaxSandboxes: c.Verify.MaxSandboxes,
		MaxWaiting: c.Verify.Queue, Pool: c.Verify.Pool,
	}
	if opts.MaxWaiting == 0 {
		opts.MaxWaiting = none
	}
	if opts.Pool == 0 || !v.system.opts.Serving {
		opts.Pool = none
	}
	sandboxes, err := runner.New(driver, opts)
	if err != nil {
		return nil, err
	}
	undo.Add(func() error { return closeRunner(ctx, sandboxes) })
	return sandboxes, nil
}

// close ends all verifications and what was opened for them.
func (v *Verifier) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	return v.undo.Run()
}

// scriptImage returns the image for plain Python scripts: the image of the engines, which has the
// packages of the SDK, with the guest that runs code. It returns nil if the image is not built or
// broken. Closing the system closes the image.
func (s *System) scriptImage() (*runner.Image, error) {
	image, err := openImage(s.directories.Home, images.Verifier, images.Extra{}, s.undo)
	if errors.Is(err, images.ErrNotBuilt) || errors.Is(err, images.ErrStale) {
		return nil, nil
	}
	if err != nil { // other programs run without it
		if s.opts.Serving {
			s.opts.Logger.WarnContext(context.Background(), "scripts are refused",
				slog.String(telemetry.KeyImage, images.Verifier), slog.Any(telemetry.KeyError, err))
		}
		return nil, nil
	}
	python, err := images.Find("python")
	if err != nil {
		return nil, err
	}
	// The guest keeps the packages loaded that scripts usually import.
	image.Args = append(slices.Clone(python.Args), "qwed_sdk.engine:preload_scripts")
	// Nothing else is in a script's environment.
	image.Env = []string{"PATH=/usr/bin", "PYTHONPATH=/usr/lib/python3/dist-packages"}
	return &image, nil
}
