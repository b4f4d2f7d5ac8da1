package runner

import (
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

// startErrOutput is how much of a failed guest's stderr goes to the log.
const startErrOutput = 4 << 10

// moment is the time at which a guest gets its start line. It then continues until it
// requests its code, and waits again.
type moment int

const (
	whenReady moment = iota // it may take the time to load ahead what code commonly needs
	atOnce                  // a run waits for it
	never                   // it is to be saved as it waits
)

// The lines that let a guest go on (docs/socket.md, step 2).
const (
	goLine  = "go\n"  // there is time before the code comes
	nowLine = "now\n" // a run waits
)

// open starts one sandbox and waits until it is ready and verified. If from is not nil,
// the sandbox continues from that template, and open releases the template.
func (r *Runner) open(ctx context.Context, req Request, from *sharedTemplate, when moment) (_ *Sandbox, err error) {
	if from != nil {
		defer func() { err = errors.Join(err, from.done()) }()
	}
	defer func() { r.proofs.started(err) }()
	id := newID()
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.StartTimeout,
		fmt.Errorf("its guest was not ready within %v", r.opts.StartTimeout))
	defer cancel()
	s, err := r.launch(ctx, id, req, from.template())
	if err != nil {
		return nil, fmt.Errorf("starting sandbox %q: %w", id, err)
	}
	s.origin, s.when = from, when
	if err := r.prepare(ctx, s, from == nil, when); err != nil {
		err = fmt.Errorf("starting sandbox %q: %w", id, err)
		r.logFailedGuest(ctx, s)
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare brings a launched sandbox to the state in which it can receive code.
func (r *Runner) prepare(ctx context.Context, s *Sandbox, fresh bool, when moment) error {
	network := s.req.Network
	if when == atOnce && network == nil {
		s.sendLine(nowLine)
	}
	if fresh {
		first := func(said string) error { return checkGreeting(said, network != nil) }
		if err := r.awaitReady(ctx, s, first); err != nil {
			return err
		}
	}
	if network != nil {
		if err := r.awaitProbe(ctx, s); err != nil {
			return err
		}
	}
	if when == whenReady {
		s.sendLine(goLine)
	}
	process, err := s.process()
	if err != nil {
		return err
	}
	if err := verify(process); err != nil {
		return err
	}
	if network != nil {
		if err := r.proofs.record(network.open()); err != nil {
			return err
		}
		s.sendLine(nowLine)
	}
	return s.machine.to(ready, "start")
}

// awaitProbe has the guest try what it must not reach, and checks what it found.
func (r *Runner) awaitProbe(ctx context.Context, s *Sandbox) error {
	p, err := newProbe(s.req.Network)
	if err != nil {
		return err
	}
	defer p.close()
	process, err := s.process()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(process.Stdin(), p.line()); err != nil {
		return r.explain(ctx, s, fmt.Errorf("probing its network: %w", err))
	}
	return r.awaitReady(ctx, s, p.check)
}

// verify checks the posture of a process. One that has ended passes: nothing can run in it, and Wait
// returns how it ended.
func verify(process Process) error {
	err := process.Verify()
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, waitErr := process.Wait(ctx); waitErr == nil || ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("it does not match the request: %w", err)
}

// makeTemplate starts a sandbox, saves it as it waits, and removes it. One that may have its code, in that when is not
// never, waits for the answer to its question for code. It cannot be started again from what was saved.
func (r *Runner) makeTemplate(ctx context.Context, req Request, when moment) (_ Template, err error) {
	saver, ok := r.driver.(Saver)
	if !ok {
		return nil, errors.New("saving a sandbox: the driver cannot")
	}
	s, err := r.open(ctx, req, nil, when)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if when != never {
		if err := s.awaitQuestion(ctx); err != nil {
			return nil, fmt.Errorf("saving a sandbox: waiting for its question: %w", err)
		}
	}
	process, err := s.process()
	if err != nil {
		return nil, err
	}
	return saver.Save(ctx, process)
}

// questionTimeout bounds the time until a guest that may have its code asks for it.
const questionTimeout = 10 * time.Second

// awaitQuestion waits until the guest has asked for its code.
func (s *Sandbox) awaitQuestion(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { s.Listener().Close() })()
	conn, err := s.Listener().Accept()
	if err != nil {
		return err
	}
	s.onClose.Add(conn.Close)
	deadline, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 4096))
	return err
}

// launch makes a sandbox, with a process that runs.
func (r *Runner) launch(ctx context.Context, id string, req Request, from Template) (_ *Sandbox, err error) {
	s := newSandbox(id, req)
	if err := r.embody(s, func(spec Spec) (Process, error) { return r.startProcess(ctx, spec, from) },
		from == nil); err != nil {
		return nil, err
	}
	r.adopt(s)
	return s, nil
}

// adopt makes a sandbox one of those that Close closes.
func (r *Runner) adopt(s *Sandbox) {
	r.track(s)
	var undo cleanup.Stack
	undo.Add(func() error { r.untrack(s); return nil })
	s.onClose = undo.Take()
}

// embody starts a process for a sandbox without one, and everything around it.
func (r *Runner) embody(s *Sandbox, start func(Spec) (Process, error), fresh bool) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	home, err := r.newHome(s.ID())
	undo.Add(home.remove)
	if err != nil {
		return err
	}
	listener, err := home.listen()
	if err != nil {
		return err
	}
	undo.Add(func() error { return closeListener(listener) })
	process, err := start(Spec{
		ID: s.ID(), Image: s.req.Image, Limits: s.req.Limits, Mounts: s.req.Mounts,
		Broker: listener, StateDir: home.state(), Network: s.req.Network.device(),
	})
	if err != nil {
		return err
	}
	s.start(process, listener, undo.Take(), fresh)
	return nil
}

func (r *Runner) startProcess(ctx context.Context, spec Spec, from Template) (Process, error) {
	if saver, ok := r.driver.(Saver); ok && from != nil {
		return saver.StartFrom(ctx, spec, func() (Template, error) { return from, nil })
	}
	return r.driver.Start(ctx, spec)
}

// awaitReady waits for the guest's next greeting and checks it.
func (r *Runner) awaitReady(ctx context.Context, s *Sandbox, check func(said string) error) error {
	select {
	case said := <-s.greeting:
		if said.err != nil {
			return r.explain(ctx, s, said.err)
		}
		return r.proofs.record(check(said.text))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// explain returns the sandbox's own reason if it has ended, and err otherwise.
func (r *Runner) explain(ctx context.Context, s *Sandbox, err error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	exit, waitErr := s.Wait(ctx)
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

// logFailedGuest logs the guest's output, to help repair the image. The caller of the run
// does not see it.
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

// closeListener closes a listener that its server may have closed before.
func closeListener(listener net.Listener) error {
	if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
