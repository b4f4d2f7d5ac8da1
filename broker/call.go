package broker

import (
	"encoding/json"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// Run is the identity of a call. It comes from the socket a call arrived on,
// never from anything the code says.
type Run struct {
	ID       string        // run_…
	Caller   caller.Caller // who asked for the run
	TraceID  string        // 32 hex digits
	CodeHash string        // sha256:… of the code's bytes
	Code     string        // the code itself, to be shown to a person who is asked; may be empty
	Language string        // of the code
	// Context is what an agent's host says of the step that the run is: JSON of the
	// context of an announced action; empty says nothing.
	Context json.RawMessage
}

// Call is one tool call as the code asked for it.
type Call struct {
	ServerID  string
	Name      string
	Arguments json.RawMessage // a JSON object
	// Line is the line of the code, from 1, that makes the call, as the client
	// inside the sandbox says; 0 where it does not. Nothing is decided by it.
	Line int
}

// Answer is what crosses back into the sandbox: the upstream's result, or a
// code, a sentence and the call's ID. Causes stay outside.
type Answer struct {
	OK bool `json:"ok"`
	// Raw is the upstream's CallToolResult, redacted. It is also set beside
	// Error when the tool itself reported the failure (isError).
	Raw   json.RawMessage `json:"raw,omitempty"`
	Error *Error          `json:"error,omitempty"`
}

// Error is a failed call as the code sees it. Type is one of the error types
// of docs/contract.md; Message is a fixed sentence or the tool's own text.
type Error struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	CallID    string `json:"call_id,omitempty"`
	Source    string `json:"source,omitempty"` // "tool" or "broker"
}
