package broker

import (
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// maxFailures is how many failed calls of a run are remembered: the newest.
const maxFailures = 1024

// failures are what the newest failed calls of a run were told, so that the code
// can repeat it and be believed. The zero value is ready; the caller guards it.
type failures struct {
	told  map[string]Error // by the call's ID
	order []string
}

// add remembers an error under the ID that the code was told.
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

// Tell returns the error that a look into the catalog is to be answered with: with an
// ID by which the code can repeat it and be believed. No call has that ID.
func (s *RunCalls) Tell(e Error) *Error {
	id := telemetry.NewID("look")
	e.CallID, e.Source = "", errortype.SourceBroker
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures.add(id, e)
	e.CallID = id
	return &e
}

// Failed returns type, source and flag, without the message, of the error that a
// call of this run, or a look into the catalog, was answered with; false when there was none, or so many
// newer ones that it is forgotten.
func (s *RunCalls) Failed(callID string) (Error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.failures.told[callID]
	return e, ok
}
