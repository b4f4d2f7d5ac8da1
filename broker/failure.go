package broker

import (
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/errortype"
)

// failure describes why a call did not succeed, for the code, the log and the audit record.
type failure struct {
	Error
	cause   error  // for the log; nil if the message is complete
	refused bool   // the act was never attempted
	detail  string // for the audit record
	limit   string // the configuration's key of the limit that was hit; empty for none
}

// failf returns a failure found by the broker.
func failf(kind, format string, args ...any) *failure {
	return &failure{Error: Error{Type: kind, Message: fmt.Sprintf(format, args...), Source: errortype.SourceBroker}}
}

// exceeded returns the failure of a call that exceeded a limit.
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

func (f *failure) retryableIf(retryable bool) *failure {
	f.Retryable = retryable
	return f
}

// upstreamFailure converts an upstream's error. The message of an *upstream.CallError is safe for
// the code. The text of any other error is only logged, because it may contain addresses, paths or
// credentials.
func upstreamFailure(err error) *failure {
	var call *upstream.CallError
	if !errors.As(err, &call) {
		return failf(errortype.Transient, "the server could not carry out the call").because(err)
	}
	f := failf(string(call.Type), "%s", call.Message).because(err)
	f.Retryable = call.Retryable
	return f
}
