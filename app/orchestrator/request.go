package orchestrator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/program"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
	"github.com/airlock-mcp/airlock/runner"
)

// Request asks for one run.
type Request struct {
	ID       string        // run_…, made before the run; empty: one is made
	Language string        // "python" or "node"; LanguageScript with Script, LanguageCall with Call
	Code     []byte        // UTF-8; digested as it is
	Timeout  time.Duration // 0 means the configured limit, which is also the most
	// Background reports that no request waits for the run, so that the time limit
	// of background runs applies.
	Background bool
	Caller     caller.Caller // who asks
	// Alone reports that the session ends with the run, so that nothing is kept for another run.
	Alone bool
	// Network lists the hosts that the code asks to reach, as NAME:PORT.
	Network []string
	// Context describes the run as a step of an agent, see broker.Run.
	Context json.RawMessage
	// Model is the language model that writes the code, if the host names it. It is recorded, and no decision depends
	// on it.
	Model string
	// Call is set if the run is one call without code: see CallRequest.
	Call *ToolCall
	// Script is set if the code is a plain Python script: see ScriptRequest.
	Script *Script
	// PreviewLarge has a result that is larger than the envelope end the run well,
	// with a preview in its place; else it is an error. It is kept either way.
	PreviewLarge bool
	// OnStart is called once, when the run has its sandbox. It may be nil.
	OnStart func(Live) `json:"-"`

	// OnSuspend is called when the run has been suspended, with the time, and with the zero time when it goes on. A
	// durable run survives the process. It may be nil.
	OnSuspend func(since time.Time, durable bool) `json:"-"`

	// Notices receives what servers send during the calls. It may be nil.
	Notices *broker.Notices `json:"-"`

	saved *savedRun // see Orchestrator.Suspended
}

// Live are the facts of a run in progress. The functions may be called at any time, also after the run.
type Live struct {
	Printed func() Printed // the output of the code so far
	Calls   func() int     // the tool calls so far, refused ones included
}

// maxProgress is how many bytes of a printed line Progress returns.
const maxProgress = 200

// Progress returns the number of tool calls so far and the last printed line, such as "3 calls: page 2 of 9". It
// returns "" if there is neither.
func (l Live) Progress() string {
	var text, last string
	if l.Calls != nil {
		switch calls := l.Calls(); calls {
		case 0:
		case 1:
			text = "1 call"
		default:
			text = fmt.Sprintf("%d calls", calls)
		}
	}
	if l.Printed != nil {
		lines := strings.TrimRight(l.Printed().Stdout, "\n")
		last = visible.Line(truncate.Head(lines[strings.LastIndexByte(lines, '\n')+1:], maxProgress))
	}
	if text != "" && last != "" {
		text += ": "
	}
	return text + last
}

// Printed is what code wrote to its streams, redacted and cut to their limits.
type Printed struct {
	Stdout    string // written to descriptor 1
	Stderr    string // written to descriptor 2
	StdoutCut int64  // bytes of Stdout that were left out; 0: it is complete
	StderrCut int64  // likewise of Stderr
}

// Outcome is a finished run.
type Outcome struct {
	Envelope Envelope
	Printed

	// End is how a script ended; the zero value for other runs.
	End End

	// Direct reports that the result is the CallToolResult of a tool that the host called itself.
	Direct bool

	redactions map[string]int // kind → how many were kept from leaving
	open       int            // calls that had not ended when the run did
}

// An InputError refuses a request before anything has happened.
type InputError struct {
	Problem string // one sentence
	Advice  string // what to do instead
}

// Error returns the problem.
func (e *InputError) Error() string { return e.Problem }

// Hint returns what to do instead.
func (e *InputError) Hint() string { return e.Advice }

// Check refuses what cannot be run with an *InputError.
func (r Request) Check() error {
	switch {
	case len(bytes.TrimSpace(r.Code)) == 0:
		return &InputError{"the code is empty",
			"write a program that assigns its answer to `result` (Python) or `globalThis.result` (JavaScript)"}
	case len(r.Code) > program.MaxSize:
		return &InputError{fmt.Sprintf("the code has %d bytes, more than the %d that a run takes", len(r.Code),
			program.MaxSize),
			"fetch large data with tools inside the code instead of writing it into the code"}
	case !utf8.Valid(r.Code):
		return &InputError{fmt.Sprintf("the code is not UTF-8: byte %d is part of no character", invalidAt(r.Code)),
			"save it as UTF-8"}
	case r.Timeout < 0:
		return &InputError{"the timeout is negative", "leave it out, or give a positive time"}
	case (r.Script != nil) != (r.Language == LanguageScript):
		return &InputError{fmt.Sprintf("the language %q is unknown", r.Language),
			"use one of: python, javascript, typescript"}
	}
	return nil
}

// RefusalType is the error type that an envelope has for a request that did not become a run.
func RefusalType(err error) string {
	var wrong *InputError
	switch {
	case errors.As(err, &wrong):
		return errortype.InvalidRequest
	case errors.Is(err, runner.ErrBusy):
		return errortype.RateLimit
	}
	return errortype.Sandbox
}

// invalidAt returns the offset of the first byte that is not UTF-8.
func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(b)
}
