// Package runner owns the life of sandboxes: it starts them through a driver,
// keeps a pool of ready ones, enforces limits, checks the isolation of each one
// before code runs in it, and removes everything afterwards.
package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// ErrBusy is returned if all sandboxes are in use and the queue is full. The caller can
// retry later.
var ErrBusy = errors.New("too many sandboxes: all are in use and the queue is full")

// ErrClosed is returned after Close.
var ErrClosed = errors.New("the runner is closed")

// Options configure a Runner. Logger and StateDir are required.
type Options struct {
	Logger   *slog.Logger
	StateDir string // directory for the state of living sandboxes; short, see New

	MaxSandboxes int           // in use at once; 0 means 8
	MaxWaiting   int           // callers in the queue for one; 0 means 32, -1 none
	StartTimeout time.Duration // from Acquire's turn until the guest is ready; 0 means 30 s

	// sandboxes to keep ready for each kind of request; 0 means 2, -1 none. It grows by one for each request
	// that found none ready, up to MaxSandboxes + MaxWaiting, within PoolMemory
	Pool       int
	PoolIdle   time.Duration // idle time after which the pool shrinks to Pool; 0 means 30 s
	PoolMemory int64         // bytes of all idle sandboxes; 0 means an eighth of the host's memory, at least 512 MiB

	SuspendDir  string // for the states of suspended sandboxes; empty means StateDir
	SuspendSize int64  // maximum bytes of all these states; 0 means that of quota.Suspended

	// Save makes repeated requests start faster that the pool has no sandboxes for.
	// If a request comes twice within PoolIdle, the state of a ready sandbox is saved,
	// and later sandboxes start from it. The saved state takes memory but no process.
	// It is removed when it was not used for PoolIdle.
	Save bool
}

// What Options mean by 0. The exported ones are also the configuration's defaults.
const (
	DefaultSandboxes    = quota.DefaultSandboxes
	DefaultWaiting      = quota.DefaultWaiting
	DefaultPool         = 2
	defaultPoolIdle     = 30 * time.Second
	leastPoolMemory     = 512 << 20
	defaultStartTimeout = 30 * time.Second
)

func (o *Options) complete() (Options, error) {
	if o == nil || o.Logger == nil || o.StateDir == "" {
		return Options{}, errors.New("a runner needs a logger and a state directory")
	}
	c := *o
	if c.MaxSandboxes < 0 || c.MaxWaiting < -1 || c.StartTimeout < 0 || c.Pool < -1 || c.PoolIdle < 0 ||
		c.PoolMemory < 0 {
		return Options{}, errors.New("a runner's counts, sizes and times must not be negative")
	}
	setDefault(&c.MaxSandboxes, DefaultSandboxes)
	setDefault(&c.MaxWaiting, DefaultWaiting)
	setDefault(&c.StartTimeout, defaultStartTimeout)
	setDefault(&c.Pool, DefaultPool)
	setDefault(&c.PoolIdle, defaultPoolIdle)
	setDefault(&c.PoolMemory, poolMemory())
	return c, nil
}

// poolMemory is an eighth of the host's memory, at least leastPoolMemory.
func poolMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return leastPoolMemory
	}
	return max(leastPoolMemory, int64(info.Totalram)*int64(info.Unit)/8)
}

// setDefault replaces 0 by what it means, and -1 by 0.
func setDefault[T ~int | ~int64](field *T, value T) {
	switch *field {
	case 0:
		*field = value
	case -1:
		*field = 0
	}
}

// Runner makes sandboxes through a driver and knows all that live. Methods may
// be called concurrently.
type Runner struct {
	driver   Driver
	opts     Options
	instance *instance
	queue    *quota.Limiter
	pool     *pool // nil if no sandboxes are kept ready
	vault    *vault
	proofs   proofs

	references references

	mu       sync.Mutex
	closed   bool
	starting map[*context.CancelCauseFunc]struct{}
	living   map[*Sandbox]struct{}
	programs map[*Program]struct{}
	users    sync.WaitGroup // starts under way
	leaving  sync.WaitGroup // sandboxes that are closed in the background
}

// Request asks for a sandbox.
type Request struct {
	Image  Image
	Limits Limits
	Mounts []Mount

	// Caller is whom the sandbox is for: where many wait, callers are served in turn.
	// The sandbox itself does not depend on it.
	Caller string `json:"-"`

	// Network is the network of the sandbox; nil means none. A sandbox with a network is never taken
	// from those that are kept ready, but it may continue from a saved one.
	Network *Network `json:"-"`

	// User is the user of the code inside (Spec.User).
	User User

	// QueueTimeout is how long Acquire waits for its turn before it returns ErrBusy; 0 means
	// as long as its context. Options.StartTimeout bounds the start that follows.
	QueueTimeout time.Duration `json:"-"`
}

// New returns a runner after it has removed what dead Airlocks left in the same
// state directory. The directory's path may have at most 40 bytes, because sockets
// are made below it. A runner that is no longer needed must be closed.
func New(driver Driver, opts *Options) (*Runner, error) {
	complete, err := opts.complete()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	own, err := openInstance(ctx, complete.StateDir)
	if err != nil {
		return nil, fmt.Errorf("preparing the directory for sandboxes: %w", err)
	}
	if err := sweep(ctx, complete.StateDir, driver, complete.Logger); err != nil {
		return nil, errors.Join(fmt.Errorf("sweeping the directory for sandboxes: %w", err), own.close())
	}
	r := &Runner{
		driver: driver, opts: complete, instance: own,
		queue:    quota.New(quota.ForSandboxes(complete.MaxSandboxes, complete.MaxWaiting)),
		starting: map[*context.CancelCauseFunc]struct{}{},
		living:   map[*Sandbox]struct{}{},
		programs: map[*Program]struct{}{},
		vault:    newVault(cmp.Or(complete.SuspendDir, own.dir), complete.SuspendSize),

		references: references{made: map[reference]*sharedTemplate{}},
	}
	if complete.Pool > 0 || complete.Save {
		r.pool = newPool(r)
	}
	return r, nil
}

// Acquire returns a fresh sandbox whose guest is ready, which has proved that gVisor's
// kernel answers it and that it has no network, or was saved after it had, and which the
// host has verified. With Request.Network, it has proved that it reaches nothing else. Once
// a sandbox proved the contrary, none is handed out any more. It waits while too many are in
// use; callers that wait have turns.
// ErrBusy means that the queue is full, ErrClosed that the runner was closed.
// The caller owns the sandbox and closes it.
func (r *Runner) Acquire(ctx context.Context, req Request) (*Sandbox, error) {
	if err := req.Limits.Check(); err != nil {
		return nil, fmt.Errorf("starting a sandbox: %w", err)
	}
	ctx, done, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	turn, err := r.awaitTurn(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("waiting for a sandbox: %w", err)
	}
	s, err := r.obtain(ctx, req)
	if err == nil {
		if err = r.proofs.hold(); err != nil {
			r.release(s)
		}
	}
	if err != nil {
		turn.Release()
		return nil, err
	}
	s.hold(turn)
	return s, nil
}

// awaitTurn takes a slot of the queue for a request, within its QueueTimeout.
func (r *Runner) awaitTurn(ctx context.Context, req Request) (*quota.Reservation, error) {
	if req.QueueTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.QueueTimeout, ErrBusy)
		defer cancel()
	}
	turn, err := r.queue.Wait(ctx, req.Caller)
	if refused := (*quota.Refusal)(nil); errors.As(err, &refused) {
		return nil, ErrBusy
	}
	return turn, err
}

// obtain takes a sandbox from the pool, or else starts one.
func (r *Runner) obtain(ctx context.Context, req Request) (*Sandbox, error) {
	if r.pool == nil {
		return r.open(ctx, req, nil, atOnce)
	}
	if req.Network != nil {
		return r.open(ctx, req, r.pool.template(req), atOnce)
	}
	s, template := r.pool.take(req)
	if s != nil {
		return s, nil
	}
	defer r.pool.started()
	return r.open(ctx, req, template, atOnce)
}

// Warm has sandboxes for the request made ready in the background, so that the
// first Acquire need not wait. Without a pool it does nothing.
func (r *Runner) Warm(req Request) {
	if r.pool != nil && req.Limits.Check() == nil {
		r.pool.warm(req)
	}
}

// Pooled is how many sandboxes wait for work now.
func (r *Runner) Pooled() int {
	if r.pool == nil {
		return 0
	}
	return r.pool.waiting()
}

// Load is what a runner is at work on.
type Load struct {
	Ready   int // sandboxes that wait for work
	InUse   int
	Waiting int // callers in the queue for one
	Most    int // sandboxes that can be in use at once
}

// Load returns the current number of sandboxes and waiters.
func (r *Runner) Load() Load {
	inUse, waiting := r.queue.Load()
	return Load{Ready: r.Pooled(), InUse: inUse, Waiting: waiting, Most: r.opts.MaxSandboxes}
}

// enter registers a call that Close must wait for and can cancel.
func (r *Runner) enter(ctx context.Context) (context.Context, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r.starting[&cancel] = struct{}{}
	r.users.Add(1)
	return ctx, func() {
		r.mu.Lock()
		delete(r.starting, &cancel)
		r.mu.Unlock()
		cancel(nil)
		r.users.Done()
	}, nil
}

// Close refuses new sandboxes, ends those that are starting, closes all that
// live and waits until nothing is left, or until ctx ends.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	for cancel := range r.starting {
		(*cancel)(ErrClosed)
	}
	r.mu.Unlock()

	finished := make(chan error, 1)
	go func() {
		r.users.Wait()
		finished <- errors.Join(r.closeAll(), r.instance.close())
	}()
	select {
	case err := <-finished:
		return err
	case <-ctx.Done():
		return fmt.Errorf("closing the runner: %w", ctx.Err())
	}
}

// release closes a sandbox in the background. Close waits for it. The error
// of one that cannot be closed goes to the log.
func (r *Runner) release(s *Sandbox) {
	r.leaving.Go(func() {
		if err := s.Close(); err != nil {
			r.opts.Logger.ErrorContext(context.Background(), "a sandbox could not be removed",
				slog.String(telemetry.KeySandbox, s.ID()), slog.Any(telemetry.KeyError, err))
		}
	})
}

func (r *Runner) closeAll() error {
	r.mu.Lock()
	var all []io.Closer
	for s := range r.living {
		all = append(all, s)
	}
	for p := range r.programs {
		all = append(all, p)
	}
	r.mu.Unlock()
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, s := range all {
		wait.Go(func() { errs[i] = s.Close() })
	}
	wait.Wait()
	r.leaving.Wait()
	errs = append(errs, r.references.close())
	if r.pool != nil {
		errs = append(errs, r.pool.close())
	}
	return errors.Join(errs...)
}

func (r *Runner) track(s *Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.living[s] = struct{}{}
}

func (r *Runner) untrack(s *Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.living, s)
}

// newID names a sandbox: random, because it is part of paths and of the names
// of control groups that other Airlocks on the host share.
func newID() string {
	var b [6]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return "sb-" + hex.EncodeToString(b[:])
}

func (r *Runner) newHome(id string) (home, error) {
	return newHome(filepath.Join(r.instance.dir, id))
}
