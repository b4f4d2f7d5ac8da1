package broker

import (
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// maxFailures is the maximum number of failed calls of a run that are remembered. The newest are
// kept.
const maxFailures = 1024

// failures holds the errors returned for the newest failed calls of a run, so that an error
// repeated by the code can be verified. The zero value is ready to use. It is not safe for
// concurrent use.
type failures struct {
	told  map[string]Error // by the call's ID
	order []string
}

// add remembers an error under the ID that was returned to the code.
func (f *failures) add(id string, e Error) {
	if f.told == nil {
		f.told = map[string]Error{}
	}
	if len(f.order) >= maxFailures {
		delete(f.told, f.order[0])
		f.order = f.order[1:]
	}
	f.order = append(f.order, id)
	f.told[id] = Error{Type: e.Type, Source: e.Source, Retryable: e.Retryable, CallID: e.CallID}
}

func (s *RunCalls) failed(e Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures.add(e.CallID, e)
}

// Tell returns the error for a catalog lookup with an ID by which a repetition of the error can be
// verified. The ID is different from those of all calls.
func (s *RunCalls) Tell(e Error) *Error {
	id := telemetry.NewID("look")
	e.CallID, e.Source = "", errortype.SourceBroker
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures.add(id, e)
	e.CallID = id
	return &e
}

// Failed returns type, source and flag, without the message, of the error returned for a call of
// this run or a catalog lookup. It returns false if no error is known: none was
// returned, or newer errors have evicted it.
func (s *RunCalls) Failed(callID string) (Error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.failures.told[callID]
	return e, ok
}
