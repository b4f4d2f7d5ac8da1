package broker

import (
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/errortype"
)

// failure is why a call did not succeed: what the code is told, and what only
// the log and the audit record are.
type failure struct {
	Error
	cause   error  // for the log; nil when the message says it all
	refused bool   // the act was never tried
	detail  string // for the audit record
	limit   string // the configuration's key of the limit that was hit; empty for none
}

// failf makes a failure found by the broker.
func failf(kind, format string, args ...any) *failure {
	return &failure{Error: Error{Type: kind, Message: fmt.Sprintf(format, args...), Source: errortype.SourceBroker}}
}

// exceeded makes the failure of a call that a limit stopped.
func exceeded(limit, kind, format string, args ...any) *failure {
	f := failf(kind, format, args...)
	f.limit, f.detail = limit, f.Message
	return f
}

func (f *failure) because(err error) *failure {
	f.cause = err
	return f
}

func (f *failure) retryable() *failure {
	f.Retryable = true
	return f
}

// upstreamFailure translates an upstream's error. A *upstream.CallError has a
// sentence that is fit for the code; of any other the text stays outside,
// because it may hold addresses, paths or credentials.
func upstreamFailure(err error) *failure {
	var call *upstream.CallError
	if !errors.As(err, &call) {
		return failf(errortype.Transient, "the server could not carry out the call").because(err)
	}
	f := failf(string(call.Type), "%s", call.Message).because(err)
	f.Retryable = call.Retryable
	return f
}
