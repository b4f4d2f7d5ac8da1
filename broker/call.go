package broker

import (
	"encoding/json"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// Run is the identity of a call. It is derived from the socket on which the call arrived, never
// from input of the code.
type Run struct {
	ID       string        // run_…
	Caller   caller.Caller // who requested the run
	TraceID  string        // 32 hex digits
	CodeHash string        // sha256:… of the code's bytes
	Code     string        // the code, shown to a person who is asked; may be empty
	Language string        // of the code
	// Context is the host's description of the step of this run: the JSON of an announced action's
	// context. It may be empty.
	Context json.RawMessage
}

// Call is one tool call as requested by the code.
type Call struct {
	ServerID  string
	Name      string
	Arguments json.RawMessage // a JSON object
	// Line is the line of the code that makes the call, starting at 1, as claimed by the client
	// inside the sandbox; 0 if unknown. It does not affect any decision.
	Line int
	// Tag identifies the call in RunCalls.Asking and to RunOptions.OnApproved. The code cannot choose it for other
	// runs; it may be empty.
	Tag string
	// Expires is when the question about this call expires that another process has asked; zero if none has. The call
	// is decided and asked about anew.
	Expires time.Time
}

// Answer is the response to the sandbox: the upstream's result, or a code, a sentence and the
// call's ID. Causes of errors are not included.
type Answer struct {
	OK bool `json:"ok"`
	// Raw is the upstream's CallToolResult, redacted. If the tool itself reported the failure
	// (isError), both Raw and Error are set.
	Raw   json.RawMessage `json:"raw,omitempty"`
	Error *Error          `json:"error,omitempty"`
}

// Error is a failed call as seen by the code. Type is one of the error types of docs/contract.md;
// Message is a fixed sentence or the tool's own text.
type Error struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	CallID    string `json:"call_id,omitempty"`
	Source    string `json:"source,omitempty"` // "tool" or "broker"
}
