package runner

import (
	"context"
	"errors"
	"fmt"
)

// Pauser is a process whose code can be suspended.
type Pauser interface {
	Process
	// Pause stops everything inside, processes that compute included, until
	// Resume. Signals from the host still end it.
	Pause(ctx context.Context) error
	// Resume continues all processes.
	Resume(ctx context.Context) error
}

// Pause suspends the code: it takes no processor time until Resume.
// errors.ErrUnsupported means that the driver cannot.
func (s *Sandbox) Pause(ctx context.Context) error {
	return s.shift(ctx, paused, "pause", Pauser.Pause)
}

// Resume lets the code of a paused sandbox go on.
func (s *Sandbox) Resume(ctx context.Context) error {
	return s.shift(ctx, running, "resume", Pauser.Resume)
}

// shift changes between running and paused. If do fails, the state does not change.
func (s *Sandbox) shift(ctx context.Context, target state, action string,
	do func(Pauser, context.Context) error) error {
	process, err := s.process()
	if err != nil {
		return err
	}
	pauser, ok := process.(Pauser)
	if !ok {
		return fmt.Errorf("cannot %s sandbox %q: %w", action, s.ID(), errors.ErrUnsupported)
	}
	before := running
	if target == running {
		before = paused
	}
	if err := s.machine.to(target, action); err != nil {
		return err
	}
	if err := do(pauser, ctx); err != nil {
		// It may have ended meanwhile: then that is its state.
		_ = s.machine.to(before, action)
		return fmt.Errorf("cannot %s sandbox %q: %w", action, s.ID(), err)
	}
	return nil
}
