package join

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/program"
)

// The protocol of PurposeRun after the daemon's reply: The client sends a line with the program.
// The daemon sends lines until the outcome. Meanwhile the client can send answers and, at most
// once, a cancellation. The client never sends the program twice: if the connection ends without an
// outcome, the run may have had effects.

// FromClient is one line of the client. One field is set.
type FromClient struct {
	Run    *RunRequest `json:"run,omitempty"` // the first line, and only that
	Answer *RunAnswer  `json:"answer,omitempty"`
	Cancel bool        `json:"cancel,omitempty"` // the outcome still follows
}

// RunRequest is one program to run.
type RunRequest struct {
	Language string        `json:"language"`
	Code     []byte        `json:"code"`
	Timeout  time.Duration `json:"timeout"`            // nanoseconds; 0: as configured
	Terminal bool          `json:"terminal,omitempty"` // a person can be asked where the client runs
	Network  []string      `json:"network,omitempty"`  // hosts that the code asks for, as NAME:PORT
}

// RunAnswer is the answer of the person at the client's terminal.
type RunAnswer struct {
	ID      string `json:"id"`                // of the question
	Approve bool   `json:"approve,omitempty"` // otherwise it is refused
	ForRun  bool   `json:"for_run,omitempty"`
	Nobody  bool   `json:"nobody,omitempty"` // no person was reached
}

// ToClient is one line of the daemon. One field is set.
type ToClient struct {
	Notice   json.RawMessage `json:"notice,omitempty"`   // a upstreams.Notice
	Question json.RawMessage `json:"question,omitempty"` // an approval.Question, to be asked at the terminal
	Waits    json.RawMessage `json:"waits,omitempty"`    // an approval.Question, to be answered elsewhere
	Over     string          `json:"over,omitempty"`     // the ID of a question that is no longer open
	Progress string          `json:"progress,omitempty"` // sent each second to a client with a terminal
	Outcome  *RunOutcome     `json:"outcome,omitempty"`  // the last line
	Refused  *RunRefusal     `json:"refused,omitempty"`  // the last line
}

// RunOutcome is the outcome of a run.
type RunOutcome struct {
	Line []byte `json:"line"` // the envelope with its newline, see orchestrator.Envelope.Line
	// Printed is the output of the code, with the credentials of the configuration redacted.
	Printed string `json:"printed,omitempty"`
	OK      bool   `json:"ok,omitempty"`      // the run has a result
	Refused bool   `json:"refused,omitempty"` // it has none because policy, or a person, refused a call
}

// ExitCode returns the exit code of the command that requested the run: 0 for a result, 1 if the
// run failed, 3 if it was refused.
func (o *RunOutcome) ExitCode() int {
	switch {
	case o.OK:
		return 0
	case o.Refused:
		return 3
	}
	return 1
}

// EndLine adds a newline to the output of the code if it lacks one and stdout and stderr are the
// same file, such as a terminal or a pipe. Then the envelope starts on a new line.
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

// RunRefusal is the reason why a program did not become a run.
type RunRefusal struct {
	Kind    string `json:"kind"` // a word of internal/errortype
	Problem string `json:"problem"`
	Advice  string `json:"advice,omitempty"`
	Usage   bool   `json:"usage,omitempty"` // the request is wrong, or the configuration
	Ending  bool   `json:"ending,omitempty"`
}

// Error is one sentence.
func (r *RunRefusal) Error() string { return r.Problem }

// Hint returns the advice.
func (r *RunRefusal) Hint() string { return r.Advice }

// MaxRunLine bounds a line of the client: a program of the largest size in base64.
const MaxRunLine = (program.MaxSize+1)*4/3 + 4<<10

// ErrLost is returned if the daemon ended while it ran a program, so that the outcome is unknown.
// Tool calls that the program made before have had their effect.
var ErrLost = errors.New(
	"the Airlock daemon ended while it ran the program: what the program did through tools until then is done, and " +
		"it is not run again")

// Send writes one line to the daemon. It is not safe for concurrent use.
func (c *Conn) Send(message FromClient) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = c.Write(append(line, '\n'))
	return err
}
