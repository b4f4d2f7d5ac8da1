// Package orchestrator takes one run from code to envelope: it borrows a
// sandbox, hands the code in, carries calls to the broker, stops what exceeds
// its limits, and says truthfully what happened.
package orchestrator

import (
	"time"

	"github.com/airlock-mcp/airlock/runner"
)

// Request asks for one run.
type Request struct {
	Language  string        // "python" or "node"
	Code      []byte        // UTF-8; digested as it is
	Timeout   time.Duration // 0 means the configured limit, which is also the most
	SessionID string
	Principal string
}

// Outcome is a finished run.
type Outcome struct {
	Envelope runner.Envelope
	Stdout   string // what the code wrote to descriptor 1, redacted and cut to its limit
	Stderr   string // likewise for descriptor 2
}

// State is where a run stands.
type State string

// The states of a run that was started in the background.
const (
	StateRunning State = "running"
	StateDone    State = "done"
	StateUnknown State = "unknown"
)

// Status is a background run as get_run shows it. Outcome is nil until it is done.
type Status struct {
	RunID   string
	State   State
	Outcome *Outcome
}
