package agents

import (
	"context"
	"fmt"
)

// Signal is what an operator sends to an agent. No agent sends one.
type Signal string

// The signals.
const (
	SIGSTOP Signal = "SIGSTOP" // it is suspended: every later call is refused, and its runs end
	SIGCONT Signal = "SIGCONT" // it goes on
	SIGKILL Signal = "SIGKILL" // it is ended for good, with its runs
)

// Status is the state that a signal leads to; false for what is no signal.
func (s Signal) Status() (Status, bool) {
	switch s {
	case SIGSTOP:
		return Suspended, true
	case SIGCONT:
		return Active, true
	case SIGKILL:
		return Killed, true
	}
	return "", false
}

// Signal changes the state of an agent. Sending a signal twice is fine; an agent
// that was killed stays so. by is who sends it.
func (s *Service) Signal(ctx context.Context, id string, signal Signal, by string) error {
	status, ok := signal.Status()
	if !ok {
		return fmt.Errorf("%q is none of SIGSTOP, SIGCONT and SIGKILL", signal)
	}
	return s.SetStatus(ctx, id, status, by)
}
