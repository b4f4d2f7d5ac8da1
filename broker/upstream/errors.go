package upstream

import (
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/errortype"
)

// The reasons for which a server is missing. Test a *StartError for them with
// errors.Is.
var (
	ErrCommandNotFound = errors.New("the command was not found")
	ErrNoDirectory     = errors.New("the working directory does not exist")
	ErrNotStarted      = errors.New("the command could not be started")
	ErrExited          = errors.New("the server exited")
	ErrNoAnswer        = errors.New("the server did not answer in time")
	ErrNotMCP          = errors.New("the server does not speak MCP")
	ErrUnreachable     = errors.New("the server could not be reached")
	ErrUnauthorized    = errors.New("the server wants other credentials")
	ErrSignIn          = errors.New("the server wants its user to sign in")
)

// StartError is the reason why a server could not be started, reached or listed.
type StartError struct {
	ServerID string
	Reason   error  // one of the reasons above
	Problem  string // one sentence about "it", the server; control characters and credentials are gone
	cause    error  // for the log
}

// Error names the server and the problem.
func (e *StartError) Error() string {
	return fmt.Sprintf("starting upstream server %q: %s", e.ServerID, e.Problem)
}

// Unwrap returns the reason and what caused it.
func (e *StartError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.cause}
}

// AskForLess is the advice for a tool's result that is too large.
const AskForLess = "ask the tool for less: one page, fewer columns or a filter"

// ErrorType is what the code in the sandbox sees as the type of a failed call;
// the names are those of the contract.
type ErrorType string

// The types of failed calls.
const (
	Timeout          ErrorType = errortype.Timeout     // no answer in time
	TransientNetwork ErrorType = errortype.Transient   // the server died, hung up, or could not be reached
	RateLimit        ErrorType = errortype.RateLimit   // the server asked for timeout (HTTP 429)
	ToolError        ErrorType = errortype.Tool        // the server refused the call
	UnknownTool      ErrorType = errortype.UnknownTool // no such server, or no such resource
	OutputLimit      ErrorType = errortype.Output      // the result is larger than maxMessage, see AskForLess
	InvalidOutput    ErrorType = errortype.OutputValidation
)

// CallError is a call without a result. A result with isError is returned as a result.
type CallError struct {
	ServerID string
	ToolName string
	Type     ErrorType
	// Message is one sentence, or the server's own message, cut to 2,000
	// characters and without hidden characters.
	Message string
	// Retryable reports that the same call can be sent again without doing
	// anything twice: it never reached the server, or the tool is declared
	// read-only or idempotent.
	Retryable bool
	cause     error // for the log; never for the sandbox
}

// Error names the call and what went wrong.
func (e *CallError) Error() string {
	return fmt.Sprintf("calling tool %q of server %q: %s", e.ToolName, e.ServerID, e.Message)
}

// Unwrap returns the cause, which may hold what must not cross into a sandbox.
func (e *CallError) Unwrap() error { return e.cause }
