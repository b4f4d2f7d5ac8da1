// Package engines has the engines that verify claims and programs, in separate sandboxes. It opens them at the first
// request, and records their verdicts and the decisions of the risk gateway in the audit log.
package engines

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/sandboxes"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/verify"
)

// Verifier verifies claims and programs. It opens the image with the engines and a separate runner
// at the first request. The runner is separate so that a run that waits for a verdict cannot
// deadlock on the sandbox that it holds. Its methods are safe for concurrent use.
type Verifier struct {
	opts Options

	mu      sync.Mutex
	service *verify.Service // nil until the first request
	image   string          // of the service: NAME@DIGEST
	undo    cleanup.Stack
	closed  bool
}

// Options are the options of New. Config, Home and Logger are required.
type Options struct {
	Config  *config.Config
	Home    string // the state directory, which has the images
	Serving bool   // keeps sandboxes ready
	Logger  *slog.Logger
}

// New returns a verifier. The caller must close it.
func New(opts Options) *Verifier { return &Verifier{opts: opts} }

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
	image, err := sandboxes.OpenImage(v.opts.Home, images.Verifier, images.Extra{}, &undo)
	if errors.Is(err, images.ErrNotBuilt) || errors.Is(err, images.ErrStale) {
		return nil, &setup.Error{Err: err, Advice: "run `airlock images build verify`"}
	}
	if err != nil {
		return nil, setup.Advise(err)
	}
	ctx, c := context.Background(), v.opts.Config
	opened, err := sandboxes.OpenVerifier(ctx, c, v.opts.Home, v.opts.Serving,
		v.opts.Logger)
	if err != nil {
		return nil, setup.Advise(err)
	}
	undo.Add(func() error { return sandboxes.Close(ctx, opened) })
	service, err := verify.New(opened, image, &verify.Options{Logger: v.opts.Logger, Timeout: c.Verify.Timeout,
		Memory: c.Verify.Memory})
	if err != nil {
		return nil, err
	}
	undo.Add(service.Close)
	v.service, v.image = service, image.Name+"@"+image.Digest
	v.undo.Add(undo.Take().Run)
	return service, nil
}

// Close ends all verifications and what was opened for them.
func (v *Verifier) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	return v.undo.Run()
}
