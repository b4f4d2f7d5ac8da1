package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// Errors of Verify: there is no verdict, and the claim may be true or false.
var (
	ErrBusy   = errors.New("too many verifications wait already")
	ErrClosed = errors.New("the verifications are closed")
	// ErrInterrupted is joined to another error if the engine was asked: it may have
	// completed its work. Without it, nothing was done.
	ErrInterrupted = errors.New("the verification was interrupted")
)

// Defaults of Options. They are also the configuration's defaults.
const (
	DefaultTimeout  = 30 * time.Second
	DefaultPatience = 10 * time.Second
	DefaultMemory   = 768 << 20
)

// Options limit one verification. Logger is required.
type Options struct {
	Logger       *slog.Logger
	Timeout      time.Duration // wall time of one request, from when its sandbox is ready; 0 means 30 s
	QueueTimeout time.Duration // how long a request waits for a sandbox before ErrBusy; 0 means 10 s
	Memory       int64         // bytes that one sandbox with its engine may use; 0 means 768 MiB
}

// Sandboxes provides the sandboxes of engines; *runner.Runner implements it. Both methods
// are safe for concurrent use. Acquire may return runner.ErrBusy, runner.ErrClosed or the
// context's error.
type Sandboxes interface {
	Acquire(ctx context.Context, req runner.Request) (*runner.Sandbox, error)
	Warm(req runner.Request)
}

var _ Sandboxes = (*runner.Runner)(nil)

// Service answers requests, each in a fresh sandbox that is removed afterwards. It is safe
// for concurrent use.
type Service struct {
	sandboxes Sandboxes
	request   runner.Request
	opts      Options

	mu      sync.Mutex
	closed  bool
	cancels map[*context.CancelCauseFunc]struct{} // of the requests under way
	asking  sync.WaitGroup                        // requests under way
	leaving sync.WaitGroup                        // sandboxes that are removed in the background
}

// New returns a service whose engines are those of the image, which must be images'
// "verify". It starts nothing. The caller closes it before the sandboxes.
func New(sandboxes Sandboxes, image runner.Image, opts *Options) (*Service, error) {
	if opts == nil || opts.Logger == nil {
		return nil, errors.New("verifications need a logger")
	}
	if opts.Timeout < 0 || opts.QueueTimeout < 0 || opts.Memory < 0 {
		return nil, errors.New("the limits of verifications must not be negative")
	}
	o := *opts
	setDefault(&o.Timeout, DefaultTimeout)
	setDefault(&o.QueueTimeout, DefaultPatience)
	setDefault(&o.Memory, DefaultMemory)
	s := &Service{sandboxes: sandboxes, request: runner.Request{Image: image, Limits: limits(&o)}, opts: o,
		cancels: map[*context.CancelCauseFunc]struct{}{}}
	if err := s.request.Limits.Check(); err != nil {
		return nil, fmt.Errorf("verifications: %w", err)
	}
	return s, nil
}

func setDefault[T ~int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// limits of a sandbox: an engine computes, and writes nothing worth keeping.
func limits(o *Options) runner.Limits {
	l := runner.DefaultLimits()
	l.Memory, l.Timeout = o.Memory, o.Timeout
	l.PIDs, l.Disk, l.Inodes, l.OpenFiles = 64, 16<<20, 256, 256
	l.Stdout, l.Stderr, l.Output = 4<<10, 16<<10, 1<<20
	return l
}

// Warm has sandboxes made ready in the background, so that the first request need
// not load its engine.
func (s *Service) Warm() { s.sandboxes.Warm(s.request) }

// Verify asks one engine. It returns a verdict for every request, even if the engine fails;
// VERIFIED is only returned if the engine returned it. The errors are ErrBusy, after which
// the request can be repeated, ErrClosed, the context's error, and the failure to start a
// sandbox. ErrInterrupted is joined to them if the engine was asked.
func (s *Service) Verify(ctx context.Context, r Request) (Verdict, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return Verdict{}, err
	}
	defer leave()
	if refused := r.check(); refused != nil {
		return *refused, nil
	}
	sandbox, err := s.acquire(ctx, r.Caller)
	if err != nil {
		return Verdict{}, err
	}
	defer s.release(sandbox)
	verdict, err := s.ask(ctx, sandbox, r)
	if err != nil {
		return Verdict{}, fmt.Errorf("%w: the engine %q: %w", ErrInterrupted, r.Engine, err)
	}
	return verdict, nil
}

// enter registers a request that Close ends and waits for.
func (s *Service) enter(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.cancels[&cancel] = struct{}{}
	s.asking.Add(1)
	return ctx, func() {
		s.mu.Lock()
		delete(s.cancels, &cancel)
		s.mu.Unlock()
		cancel(nil)
		s.asking.Done()
	}, nil
}

// acquire waits for its turn, but not as long as others may compute, and for its sandbox.
func (s *Service) acquire(ctx context.Context, caller string) (*runner.Sandbox, error) {
	wanted := s.request
	wanted.Caller, wanted.QueueTimeout = caller, s.opts.QueueTimeout
	sandbox, err := s.sandboxes.Acquire(ctx, wanted)
	switch {
	case err == nil:
		return sandbox, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, runner.ErrClosed):
		return nil, ErrClosed
	case errors.Is(err, runner.ErrBusy):
		return nil, ErrBusy
	}
	return nil, fmt.Errorf("starting a sandbox for a verification: %w", err)
}

// release removes a sandbox in the background; Close waits for it.
func (s *Service) release(sandbox *runner.Sandbox) {
	s.leaving.Go(func() {
		if err := sandbox.Close(); err != nil {
			s.opts.Logger.ErrorContext(context.Background(), "a sandbox could not be removed",
				slog.String(telemetry.KeySandbox, sandbox.ID()), slog.Any(telemetry.KeyError, err))
		}
	})
}

// Close refuses new requests, ends those under way with ErrClosed, and returns when no
// sandbox of theirs is left. Calling it twice is fine.
func (s *Service) Close() error {
	s.mu.Lock()
	s.closed = true
	for cancel := range s.cancels {
		(*cancel)(ErrClosed)
	}
	s.mu.Unlock()
	s.asking.Wait()
	s.leaving.Wait()
	return nil
}
