package orchestrator

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// pauseAfter is how long a run waits for a person before its sandbox is paused:
	// calls that the code makes at the same moment still get out, and are asked
	// about together.
	pauseAfter = 100 * time.Millisecond
	// pauseTimeout bounds pausing and resuming.
	pauseTimeout = 10 * time.Second
)

// pauser pauses a run while it waits for a person: its clock at
// once, its sandbox soon after. If it waits for longer, the sandbox is suspended.
type pauser struct {
	run      *run
	clock    *clock
	going    *pausers
	over     <-chan struct{}         // closed when the run is over, cancelled or left to another process
	leaveRun context.CancelCauseFunc // ends the run

	mu        sync.Mutex // guards what follows, and is held while the sandbox changes
	waiting   bool
	timer     *time.Timer
	paused    bool
	suspended bool
	refused   bool      // the states of suspended runs take too much, see suspend
	resuming  bool      // it waits for a slot, see resume
	saved     *savedRun // the stored state of the suspended run for another process; may be nil
	left      bool      // to another process
	lost      bool      // its state could not be continued
}

// wait is called when the run starts or stops waiting for a person.
func (p *pauser) wait(waiting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = waiting
	if waiting {
		p.clock.pause(true)
		if p.run.request.Restored() {
			p.run.request.saved.here.settled()
		}
		if !p.suspended {
			p.timer = time.AfterFunc(pauseAfter, p.pause)
		}
		return
	}
	if p.suspended { // its clock is paused until it goes on
		if !p.isDurable() { // otherwise the answer is stored first, see answered
			go p.resume(false) // it may have to wait for a slot
		}
		return
	}
	p.timer.Stop()
	p.clock.pause(false)
	p.resumeLocked()
}

// pause stops the sandbox. Where that cannot be done, the code goes on, and the
// clock charges the run for what it does meanwhile.
func (p *pauser) pause() {
	if p.going.isLeaving() {
		p.leave()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pauseLocked()
}

func (p *pauser) pauseLocked() {
	if !p.waiting || p.paused || p.suspended {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pauseTimeout)
	defer cancel()
	err := p.run.sandbox.Pause(ctx)
	p.paused = err == nil
	if after := p.run.suspendAfter; p.paused && after > 0 {
		p.timer = time.AfterFunc(max(after-pauseAfter, 0), p.suspend)
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) && !p.hasEnded() {
		p.log(ctx, "a run that waits for a person could not be paused", err)
	}
}

// resumeLocked lets a paused sandbox go on. One that does not would hang until
// its time is over, so it is ended.
func (p *pauser) resumeLocked() {
	if !p.paused {
		return
	}
	p.paused = false
	ctx, cancel := context.WithTimeout(context.Background(), pauseTimeout)
	defer cancel()
	if err := p.run.sandbox.Resume(ctx); err != nil && !p.hasEnded() {
		p.log(ctx, "a paused run could not go on and is ended", err)
		if err := p.run.sandbox.Kill(); err != nil {
			p.log(ctx, "a paused run could not be ended", err)
		}
	}
}

// hasEnded reports whether the sandbox has ended, so that nothing need be changed.
func (p *pauser) hasEnded() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = p.run.sandbox.Wait(ctx) // how it ended, the run itself reports
	return ctx.Err() == nil
}
