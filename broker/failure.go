package broker

import (
	"errors"
	"fmt"
)

// The error types that the broker gives; docs/contract.md lists all.
const (
	typeTool             = "ToolError"
	typeValidation       = "ValidationError"
	typeOutputValidation = "OutputValidationError"
	typeUnknownTool      = "UnknownTool"
	typePolicyDenied     = "PolicyDenied"
	typeApprovalDenied   = "ApprovalDenied"
	typeApprovalTimeout  = "ApprovalTimeout"
	typeBudget           = "BudgetExceeded"
	typeLoop             = "LoopDetected"
	typeRateLimit        = "RateLimit"
	typeTimeout          = "Timeout"
	typeTransient        = "TransientNetwork"
	typeOutputLimit      = "OutputLimit"
	typeKilled           = "Killed"
	typeSandbox          = "SandboxError"
)

// The values of Error.Source.
const (
	sourceTool   = "tool"
	sourceBroker = "broker"
)

// failure is why a call did not succeed: what the code is told, and what only
// the log and the audit record are.
type failure struct {
	Error
	cause   error  // for the log; nil when the message says it all
	refused bool   // the act was never tried
	detail  string // for the audit record
}

// failf makes a failure found by the broker.
func failf(kind, format string, args ...any) *failure {
	return &failure{Error: Error{Type: kind, Message: fmt.Sprintf(format, args...), Source: sourceBroker}}
}

func (f *failure) because(err error) *failure {
	f.cause = err
	return f
}

func (f *failure) retryable() *failure {
	f.Retryable = true
	return f
}

// typed is what an upstream's error may say about itself.
type typed interface {
	error
	Type() string
	Retryable() bool
}

// sentences are what the code is told about an upstream's error, by type. The
// error's own text stays outside: it may hold addresses, paths or credentials.
var sentences = map[string]string{
	typeTimeout:   "the server did not answer in time; ask for less, or try again",
	typeTransient: "the server could not be reached; try again",
	typeRateLimit: "the server says that it is called too often; wait, then try again",
	typeTool:      "the server refused the call",
}

// upstreamFailure translates an upstream's error.
func upstreamFailure(err error) *failure {
	kind, retryable := typeTransient, false
	var t typed
	if errors.As(err, &t) {
		kind, retryable = t.Type(), t.Retryable()
	}
	sentence, known := sentences[kind]
	if !known {
		sentence = "the server could not carry out the call"
	}
	f := failf(kind, "%s", sentence).because(err)
	f.Retryable = retryable
	return f
}
