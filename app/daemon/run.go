package daemon

import (
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/broker/approval"
)

// What follows the daemon's reply on a connection for one run: a line from the
// client with the program, lines from the daemon until the outcome, and meanwhile
// lines from the client with answers and, at most once, a cancellation. The client
// never sends the program twice: when the connection ends without an outcome, the run
// may have done anything.

// fromClient is one line of the client. One field is set.
type fromClient struct {
	Run    *RunRequest `json:"run,omitempty"` // the first line, and only that
	Answer *runAnswer  `json:"answer,omitempty"`
	Cancel bool        `json:"cancel,omitempty"` // the outcome follows all the same
}

// RunRequest is one program to run.
type RunRequest struct {
	Language string        `json:"language"`
	Code     []byte        `json:"code"`
	Timeout  time.Duration `json:"timeout"`            // nanoseconds; 0: as configured
	Terminal bool          `json:"terminal,omitempty"` // a person can be asked where the client runs
}

// runAnswer is what the person at the client's terminal said.
type runAnswer struct {
	ID      string `json:"id"`                // of the question
	Approve bool   `json:"approve,omitempty"` // else it is refused
	ForRun  bool   `json:"for_run,omitempty"`
	Nobody  bool   `json:"nobody,omitempty"` // no person was reached
}

// toClient is one line of the daemon. One field is set.
type toClient struct {
	Notice   *system.Notice     `json:"notice,omitempty"`
	Question *approval.Question `json:"question,omitempty"` // to be asked at the terminal
	Waits    *approval.Question `json:"waits,omitempty"`    // to be answered elsewhere
	Over     string             `json:"over,omitempty"`     // the ID of a question that is open no more
	Outcome  *RunOutcome        `json:"outcome,omitempty"`  // the last line
	Refused  *RunRefusal        `json:"refused,omitempty"`  // the last line
}

// RunOutcome is what came of a run.
type RunOutcome struct {
	Line   []byte `json:"line"` // the envelope with its newline, see orchestrator.Envelope.Line
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// Envelope is the one that Line has.
func (o *RunOutcome) Envelope() (orchestrator.Envelope, error) {
	var e orchestrator.Envelope
	err := json.Unmarshal(o.Line, &e)
	return e, err
}

// RunRefusal says why a program did not become a run.
type RunRefusal struct {
	Kind    string `json:"kind"` // a word of internal/errortype
	Problem string `json:"problem"`
	Advice  string `json:"advice,omitempty"`
	Usage   bool   `json:"usage,omitempty"` // the request is wrong, or the configuration
	Ending  bool   `json:"ending,omitempty"`
}

// Error is one sentence.
func (r *RunRefusal) Error() string { return r.Problem }

// Hint says what to do.
func (r *RunRefusal) Hint() string { return r.Advice }

// maxRunLine bounds a line of the client: a program of the largest size in base64.
const maxRunLine = (orchestrator.MaxCode+1)*4/3 + 4<<10
