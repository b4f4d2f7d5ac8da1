package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// readyLine is what a guest writes first (docs/socket.md, step 1).
const readyLine = "ready\n"

// startErrOutput is how much of a failed guest's stderr goes to the log.
const startErrOutput = 4 << 10

// start makes one sandbox and waits until it is ready and verified. What undo
// holds on success belongs to the sandbox; on failure the caller runs it.
func (r *Runner) start(ctx context.Context, req Request, undo *cleanup.Stack) (*Sandbox, error) {
	id := newID()
	s, err := r.launch(ctx, id, req, undo)
	if err != nil {
		return nil, fmt.Errorf("starting sandbox %q: %w", id, err)
	}
	if err := r.awaitReady(ctx, s); err != nil {
		err = fmt.Errorf("starting sandbox %q: %w", id, err)
		r.logFailedGuest(ctx, s)
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// launch starts the process of a sandbox and everything around it. The result
// owns what undo held.
func (r *Runner) launch(ctx context.Context, id string, req Request, undo *cleanup.Stack) (*Sandbox, error) {
	home, err := r.newHome(id)
	undo.Add(home.remove)
	if err != nil {
		return nil, err
	}
	listener, err := home.listen()
	if err != nil {
		return nil, err
	}
	undo.Add(func() error {
		// Whoever serves the socket may have closed it before.
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	process, err := r.driver.Start(ctx, Spec{
		ID: id, Image: req.Image, Limits: req.Limits, Mounts: req.Mounts,
		SocketDir: home.socketDir(), StateDir: home.state(),
	})
	if err != nil {
		return nil, err
	}
	s := &Sandbox{
		machine: machine{id: id, now: starting}, process: process, listener: listener,
		limits: req.Limits, flooded: make(chan struct{}),
	}
	s.stdout = newCollector(req.Limits.Stdout, s.counted)
	s.stderr = newCollector(req.Limits.Stderr, s.counted)
	go s.stderr.drain(process.Stderr())
	undo.Add(func() error { r.untrack(s); return nil })
	s.onClose = undo.Take()
	r.track(s)
	return s, nil
}

// awaitReady waits for the guest's first line, then for the driver's proof.
func (r *Runner) awaitReady(ctx context.Context, s *Sandbox) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.StartTimeout,
		fmt.Errorf("its guest was not ready within %v", r.opts.StartTimeout))
	defer cancel()
	stdout := bufio.NewReader(s.process.Stdout())
	line := make(chan error, 1)
	go func() {
		err := readReady(stdout)
		line <- err
		s.stdout.drain(stdout)
	}()
	select {
	case err := <-line:
		if err != nil {
			return r.explain(ctx, s, err)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.process.Verify(); err != nil {
		return fmt.Errorf("it is not what was asked for: %w", err)
	}
	return s.machine.to(ready, "start")
}

// readReady reads exactly the ready line and nothing behind it.
func readReady(r io.Reader) error {
	var line [len(readyLine)]byte
	if _, err := io.ReadFull(r, line[:]); err != nil {
		return errors.New("its guest ended before it was ready")
	}
	if string(line[:]) != readyLine {
		return fmt.Errorf("its guest wrote %q instead of its ready line", line[:])
	}
	return nil
}

// explain prefers the reason of the sandbox itself, where it has ended.
func (r *Runner) explain(ctx context.Context, s *Sandbox, err error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	exit, waitErr := s.process.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return err
	case waitErr != nil:
		return waitErr
	case exit.Reason == ReasonMemory:
		return fmt.Errorf("%w: its memory limit is too small", err)
	case exit.Signal != 0:
		return fmt.Errorf("%w, by signal %d", err, exit.Signal)
	}
	return fmt.Errorf("%w, with status %d", err, exit.Code)
}

// logFailedGuest keeps what the guest said for whoever repairs the image. The
// code that was to run does not see it.
func (r *Runner) logFailedGuest(ctx context.Context, s *Sandbox) {
	tail := strings.TrimSpace(string(s.Stderr().Tail))
	if tail == "" {
		return
	}
	if len(tail) > startErrOutput {
		tail = tail[len(tail)-startErrOutput:]
	}
	r.opts.Logger.ErrorContext(ctx, "the guest of a sandbox failed",
		slog.String(telemetry.KeySandbox, s.ID()), slog.String(telemetry.KeyError, tail))
}
