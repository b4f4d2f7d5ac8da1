package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/wire"
)

const (
	// suspendTimeout bounds saving a sandbox.
	suspendTimeout = 30 * time.Second
	// suspendAttempts is how often a sandbox is paused anew because a message was under way.
	suspendAttempts = 5
	// settleTime is how long the code runs between two attempts, to read what has been sent to it.
	settleTime = 20 * time.Millisecond
)

// errNotWaiting is returned if the code has requests that do not wait for people.
var errNotWaiting = errors.New("not all requests wait for people")

// suspend saves the paused sandbox of a run and frees it. If that is not possible now, it is tried again
// later; if it is never possible, the sandbox stays paused.
func (p *pauser) suspend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), suspendTimeout)
	defer cancel()
	var err error
	for range suspendAttempts {
		if !p.waiting || !p.paused {
			return
		}
		if err = p.suspendLocked(ctx); err == nil {
			p.paused, p.suspended = false, true
			p.note(ctx, audit.KindRunSuspend)
			return
		}
		if !errors.Is(err, wire.ErrNotQuiet) && !errors.Is(err, errNotWaiting) {
			break
		}
		if err := p.settleLocked(ctx); err != nil {
			p.log(ctx, "a run that waits for a person could not go on for a moment", err)
			return
		}
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported), p.over():
	case errors.Is(err, wire.ErrNotQuiet), errors.Is(err, errNotWaiting), errors.As(err, new(*quota.Refusal)):
		p.timer = time.AfterFunc(p.run.suspendAfter, p.suspend)
	default:
		p.log(ctx, "a run that waits for a person could not be suspended", err)
	}
}

// suspendLocked suspends the sandbox if all its requests wait for people.
func (p *pauser) suspendLocked(ctx context.Context) error {
	r := p.run
	held, open, err := r.socket.Hold(ctx)
	if err != nil {
		return err
	}
	if open != r.calls.Waiting() {
		held.Release()
		return errNotWaiting
	}
	err = r.parts.Runner.Suspend(ctx, r.sandbox)
	if errors.Is(err, errors.ErrUnsupported) {
		held.Release()
		return err
	}
	// The connections have ended, even if the sandbox could not be saved.
	held.Detach()
	return err
}

// settleLocked lets the code run for a moment.
func (p *pauser) settleLocked(ctx context.Context) error {
	if err := p.run.sandbox.Resume(ctx); err != nil {
		return err
	}
	time.Sleep(settleTime)
	return p.run.sandbox.Pause(ctx)
}

// resume continues a suspended run. One that cannot go on has failed.
func (p *pauser) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.suspended || p.waiting {
		return
	}
	p.suspended = false
	ctx, cancel := context.WithTimeout(context.Background(), p.run.limits.Timeout)
	defer cancel()
	err := p.run.parts.Runner.Continue(ctx, p.run.sandbox)
	p.clock.pause(false)
	if err != nil {
		if !p.over() {
			p.log(ctx, "a suspended run could not go on and is ended", err)
		}
		return
	}
	p.note(ctx, audit.KindRunResume)
}

// note records that the run was suspended, or goes on.
func (p *pauser) note(ctx context.Context, kind audit.Kind) {
	record := p.run.record(kind)
	if err := p.run.parts.Audit.Note(ctx, record); err != nil {
		p.log(ctx, "that a run was suspended or goes on could not be recorded", err)
	}
}
