package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/telemetry"
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
	_ = p.suspendLocked() // it has logged the error
}

// suspendLocked is suspend. It returns nil if the run is suspended.
func (p *pauser) suspendLocked() error {
	ctx, cancel := context.WithTimeout(context.Background(), suspendTimeout)
	defer cancel()
	var err error
	for range suspendAttempts {
		if !p.waiting || !p.paused {
			return errNotWaiting
		}
		if err = p.trySuspendLocked(ctx); err == nil {
			p.paused, p.suspended, p.refused = false, true, false
			p.notify(true)
			p.note(ctx, audit.KindRunSuspend)
			return nil
		}
		if !errors.Is(err, wire.ErrNotQuiet) && !errors.Is(err, errNotWaiting) {
			break
		}
		if err := p.settleLocked(ctx); err != nil {
			p.log(ctx, "a run that waits for a person could not go on for a moment", err)
			return err
		}
	}
	full := (*quota.Refusal)(nil)
	switch {
	case errors.Is(err, errors.ErrUnsupported), p.hasEnded():
	case errors.As(err, &full):
		if !p.refused {
			p.log(ctx, "a run that waits for a person stays paused: raise runs.suspendedSize, or answer questions", err)
			full.Count(ctx)
		}
		p.refused = true
		p.timer = time.AfterFunc(p.run.suspendAfter, p.suspend)
	case errors.Is(err, wire.ErrNotQuiet), errors.Is(err, errNotWaiting):
		p.timer = time.AfterFunc(p.run.suspendAfter, p.suspend)
	default:
		p.log(ctx, "a run that waits for a person could not be suspended", err)
	}
	return err
}

// trySuspendLocked suspends the sandbox if all its requests wait for people. If they all wait for approval, the run
// can then be continued by another process.
func (p *pauser) trySuspendLocked(ctx context.Context) error {
	r := p.run
	held, open, err := r.socket.Hold(ctx)
	if err != nil {
		return err
	}
	if open != r.calls.Waiting() {
		held.Release()
		return errNotWaiting
	}
	asking := r.calls.Asking()
	durable := r.parts.Suspended != nil && len(asking) == open
	err = r.parts.Runner.Suspend(ctx, r.sandbox, durable)
	if errors.Is(err, errors.ErrUnsupported) {
		held.Release()
		return err
	}
	// The connections have ended, even if the sandbox could not be saved.
	held.Detach()
	if err != nil || !durable {
		return err
	}
	saved, ok := p.save(asking)
	if !ok {
		return nil
	}
	former := p.saved
	p.saved = saved
	if err := p.putLocked(); err != nil {
		p.saved = former
		p.log(ctx, "a suspended run ends with this process", err)
	}
	return nil
}

// settleLocked lets the code run for a moment.
func (p *pauser) settleLocked(ctx context.Context) error {
	if err := p.run.sandbox.Resume(ctx); err != nil {
		return err
	}
	time.Sleep(settleTime)
	return p.run.sandbox.Pause(ctx)
}

// suspendNow suspends a run that waits. It returns nil if the run is suspended.
func (p *pauser) suspendNow() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suspendNowLocked()
}

func (p *pauser) suspendNowLocked() error {
	switch {
	case p.suspended:
		return nil
	case !p.waiting:
		return errNotWaiting
	}
	p.timer.Stop()
	p.pauseLocked()
	p.timer.Stop()
	return p.suspendLocked()
}

// isSuspended reports whether the run is suspended.
func (p *pauser) isSuspended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suspended
}

// resume continues a suspended run once a slot is free, unless calls wait for people again and it is not forced. One
// that cannot go on has failed. One that is left to another process, or is over, stays suspended.
func (p *pauser) resume(forced bool) {
	p.mu.Lock()
	if !p.suspended || p.left || p.waiting && !forced || p.resuming {
		p.mu.Unlock()
		return
	}
	p.resuming = true
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-p.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	// The lock is free meanwhile, because all other sandboxes may be in use for hours.
	slot, err := p.run.parts.Runner.Slot(ctx, p.run.sandbox)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resuming = false
	switch {
	case err != nil:
		return
	case !p.suspended, p.left, p.waiting && !forced:
		slot.Release()
		return
	}
	p.continueLocked(ctx, slot)
}

// continueLocked continues a suspended run in a slot.
func (p *pauser) continueLocked(ctx context.Context, slot *quota.Reservation) {
	err := p.run.parts.Runner.Continue(ctx, p.run.sandbox, slot, p.beginLocked)
	p.suspended = false
	p.notify(false)
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		p.clock.pause(false)
		select {
		case <-p.over: // the error is that of its end
		default:
			p.lost = true
			p.log(ctx, "a suspended run could not go on and is ended", err)
			p.noteLost(ctx, err)
		}
		return
	}
	p.note(ctx, audit.KindRunResume)
	if p.waiting { // it goes on all the same, and is paused again
		p.timer = time.AfterFunc(p.run.suspendAfter, p.pause)
		return
	}
	p.clock.pause(false)
}

// beginLocked notes, before the sandbox goes on, that no other process can continue the run.
func (p *pauser) beginLocked() error {
	if p.saved == nil {
		return nil
	}
	p.saved.Continued = true
	return p.putLocked()
}

// putLocked stores the suspended run. A run that another node has taken is left to it.
func (p *pauser) putLocked() error {
	stored := p.run.parts.Suspended
	_, shared := stored.(SharedRuns)
	about := p.saved.about()
	if shared && !p.saved.Continued {
		about.Files = p.filesFor(p.saved)
	}
	err := stored.Put(p.run.identity.ID, p.saved, about)
	if errors.Is(err, suspended.ErrTaken) {
		p.left = true
		p.leaveRun(errTaken)
	}
	return err
}

// approved notes, before it is made, that a person has approved a call of a suspended run.
func (p *pauser) approved(tag string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return errLeft
	}
	return p.changeLocked(tag, func(call *savedCall) { call.Begun = true })
}

// answered notes the answer to a call of a suspended run.
func (p *pauser) answered(ctx context.Context, tag string, answer callAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return
	}
	err := p.changeLocked(tag, func(call *savedCall) {
		// The error of an answer that has no JSON ends the run when it is sent.
		call.Answer, _ = answer.AppendJSON(nil)
	})
	if err != nil {
		p.log(ctx, "the answer to a call of a suspended run could not be stored", err)
	}
	switch {
	case p.going.isLeaving():
		go p.leave()
	case p.suspended && !p.waiting:
		go p.resume(false) // it may have to wait for a slot
	}
}

// changeLocked changes what is stored of an open call of a suspended run, if there is such a call.
func (p *pauser) changeLocked(tag string, change func(*savedCall)) error {
	if !p.isDurable() {
		return nil
	}
	call := p.saved.find(tag)
	if call == nil {
		return nil
	}
	change(call)
	return p.putLocked()
}

// leave leaves a run to another process if it waits for people, or only waits to go on. If calls of it are being made,
// their answers are awaited first.
func (p *pauser) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.suspendNowLocked() != nil || !p.isDurable() || p.saved.isMaking() || p.left {
		return
	}
	p.left = true
	p.leaveRun(errLeft)
}

// end removes what is stored of a run that is over.
func (p *pauser) end(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.saved == nil {
		return
	}
	if err := errors.Join(p.run.parts.Suspended.Remove(p.run.identity.ID), p.run.sandbox.EndSuspending()); err != nil {
		p.log(ctx, "what was stored of a suspended run could not be removed", err)
	}
}

// isDurable reports whether another process can continue the suspended run. The stored state may be of an earlier
// suspension.
func (p *pauser) isDurable() bool { return p.saved != nil && !p.saved.Continued }

// notify informs the caller of the run that it was suspended, or goes on.
func (p *pauser) notify(suspended bool) {
	told := p.run.request.OnSuspend
	switch {
	case told == nil:
	case !suspended:
		told(time.Time{}, false)
	case p.isDurable() && !p.saved.Suspended.IsZero(): // it may have been suspended by another process
		told(p.saved.Suspended, true)
	default:
		told(time.Now(), p.isDurable())
	}
}

// note records that the run was suspended, or goes on.
func (p *pauser) note(ctx context.Context, kind audit.Kind) {
	record := p.run.record(kind)
	if kind == audit.KindRunSuspend && p.isDurable() {
		record.Durable, record.Suspension = true, p.saved.Number
	}
	if err := p.run.parts.Audit.Note(ctx, record); err != nil {
		p.log(ctx, "that a run was suspended or goes on could not be recorded", err)
	}
}

// noteLost records that a suspended run cannot go on.
func (p *pauser) noteLost(ctx context.Context, why error) {
	record := p.run.record(audit.KindRunResume)
	record.Outcome, record.ErrorType = audit.OutcomeRefused, errortype.Interrupted
	record.Detail = "the stored state of the suspended run was refused: " + why.Error()
	if err := p.run.parts.Audit.Note(ctx, record); err != nil {
		p.log(ctx, "that a suspended run cannot go on could not be recorded", err)
	}
}

// isLost reports whether the state of the suspended run could not be continued.
func (p *pauser) isLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// pausers are the runs that go on and may wait for people. The zero value is ready to use.
type pausers struct {
	mu      sync.Mutex
	byRun   map[string]*pauser
	leaving bool
}

// add adds a run, until remove is called.
func (all *pausers) add(p *pauser) (remove func()) {
	id := p.run.identity.ID
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byRun == nil {
		all.byRun = map[string]*pauser{}
	}
	all.byRun[id] = p
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.byRun, id)
	}
}

// find returns a run that goes on, or nil.
func (all *pausers) find(id string) *pauser {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.byRun[id]
}

// isLeaving reports whether leave was called.
func (all *pausers) isLeaving() bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.leaving
}

// leave leaves all runs that wait, and those that wait later.
func (all *pausers) leave() {
	all.mu.Lock()
	all.leaving = true
	var now []*pauser
	for _, p := range all.byRun {
		now = append(now, p)
	}
	all.mu.Unlock()
	var left sync.WaitGroup
	for _, p := range now {
		left.Go(p.leave)
	}
	left.Wait()
}

func (p *pauser) log(ctx context.Context, message string, err error) {
	p.run.parts.Logger.ErrorContext(ctx, message,
		slog.String(telemetry.KeyRun, p.run.identity.ID), slog.Any(telemetry.KeyError, err))
}
