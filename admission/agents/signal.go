package agents

import (
	"context"
	"fmt"
)

// Signal is an operator's command to an agent. Agents cannot send signals.
type Signal string

// The signals.
const (
	SIGSTOP Signal = "SIGSTOP" // suspends it: later calls are refused, and its runs end
	SIGCONT Signal = "SIGCONT" // resumes it
	SIGKILL Signal = "SIGKILL" // kills it permanently and ends its runs
)

// Status returns the state that a signal leads to. It returns false for an unknown signal.
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

// Signal changes the state of an agent. Sending a signal twice has no further effect, and a killed
// agent stays killed. by is the sender.
func (s *Service) Signal(ctx context.Context, id string, signal Signal, by string) error {
	status, ok := signal.Status()
	if !ok {
		return fmt.Errorf("%q is not one of SIGSTOP, SIGCONT and SIGKILL", signal)
	}
	return s.SetStatus(ctx, id, status, by)
}
