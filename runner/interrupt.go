package runner

import (
	"context"
	"errors"
	"fmt"
)

// Interrupter is a process whose guest program can be sent a signal.
type Interrupter interface {
	Process
	// Interrupt sends SIGUSR1 to the guest program, the first process inside, and to no other.
	Interrupt(ctx context.Context) error
}

// Interrupt sends SIGUSR1 to the guest program. A paused sandbox is not interrupted, which is
// an error: not every driver can, and finding that out is dear. errors.ErrUnsupported means that the driver cannot.
func (s *Sandbox) Interrupt(ctx context.Context) error {
	process, err := s.process()
	if err != nil {
		return err
	}
	interrupter, ok := process.(Interrupter)
	if !ok {
		return fmt.Errorf("cannot interrupt sandbox %q: %w", s.ID(), errors.ErrUnsupported)
	}
	if s.machine.is(paused) {
		return fmt.Errorf("cannot interrupt sandbox %q in state %s", s.ID(), paused)
	}
	if err := interrupter.Interrupt(ctx); err != nil {
		return fmt.Errorf("interrupting sandbox %q: %w", s.ID(), err)
	}
	return nil
}
