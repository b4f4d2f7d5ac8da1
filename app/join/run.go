package join

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/program"
)

// What follows the daemon's reply on a connection for one run: a line from the
// client with the program, lines from the daemon until the outcome, and meanwhile
// lines from the client with answers and, at most once, a cancellation. The client
// never sends the program twice: when the connection ends without an outcome, the run
// may have done anything.

// FromClient is one line of the client. One field is set.
type FromClient struct {
	Run    *RunRequest `json:"run,omitempty"` // the first line, and only that
	Answer *RunAnswer  `json:"answer,omitempty"`
	Cancel bool        `json:"cancel,omitempty"` // the outcome follows all the same
}

// RunRequest is one program to run.
type RunRequest struct {
	Language string        `json:"language"`
	Code     []byte        `json:"code"`
	Timeout  time.Duration `json:"timeout"`            // nanoseconds; 0: as configured
	Terminal bool          `json:"terminal,omitempty"` // a person can be asked where the client runs
}

// RunAnswer is what the person at the client's terminal said.
type RunAnswer struct {
	ID      string `json:"id"`                // of the question
	Approve bool   `json:"approve,omitempty"` // else it is refused
	ForRun  bool   `json:"for_run,omitempty"`
	Nobody  bool   `json:"nobody,omitempty"` // no person was reached
}

// ToClient is one line of the daemon. One field is set.
type ToClient struct {
	Notice   json.RawMessage `json:"notice,omitempty"`   // a system.Notice
	Question json.RawMessage `json:"question,omitempty"` // an approval.Question, to be asked at the terminal
	Waits    json.RawMessage `json:"waits,omitempty"`    // an approval.Question, to be answered elsewhere
	Over     string          `json:"over,omitempty"`     // the ID of a question that is open no more
	Outcome  *RunOutcome     `json:"outcome,omitempty"`  // the last line
	Refused  *RunRefusal     `json:"refused,omitempty"`  // the last line
}

// RunOutcome is what came of a run.
type RunOutcome struct {
	Line []byte `json:"line"` // the envelope with its newline, see orchestrator.Envelope.Line
	// Printed is what the code wrote, as it may be printed beside the envelope: without
	// the credentials of the configuration.
	Printed string `json:"printed,omitempty"`
	OK      bool   `json:"ok,omitempty"`      // the run has a result
	Refused bool   `json:"refused,omitempty"` // it has none because policy, or a person, refused a call
}

// ExitCode is what the command that asked for the run ends with: 0, or 1 where the run
// failed, or 3 where it was refused.
func (o *RunOutcome) ExitCode() int {
	switch {
	case o.OK:
		return 0
	case o.Refused:
		return 3
	}
	return 1
}

// EndLine ends the last line of what the code wrote where stdout and stderr lead to the same
// place, a terminal or one pipe, so that the envelope is a line of its own there.
func (o *RunOutcome) EndLine(stdout, stderr *os.File) {
	if o.Printed == "" || strings.HasSuffix(o.Printed, "\n") {
		return
	}
	one, err := stdout.Stat()
	if err != nil {
		return
	}
	if other, err := stderr.Stat(); err == nil && os.SameFile(one, other) {
		o.Printed += "\n"
	}
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

// MaxRunLine bounds a line of the client: a program of the largest size in base64.
const MaxRunLine = (program.MaxSize+1)*4/3 + 4<<10

// ErrLost says that a daemon ended while it ran a program, so that what came of it is
// not known. What the program did through tools until then is done.
var ErrLost = errors.New("the Airlock daemon ended while it ran the program: what the program did through tools until then is done, and it is not run again")

// Send writes one line to the daemon. It is not for concurrent use.
func (c *Conn) Send(message FromClient) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = c.Write(append(line, '\n'))
	return err
}
