package broker

// maxFailures is how many failed calls of a run are remembered: the newest.
const maxFailures = 1024

// failures are what the newest failed calls of a run were told, so that the code
// can repeat it and be believed. The zero value is ready; the caller guards it.
type failures struct {
	told  map[string]Error // by the call's ID
	order []string
}

func (f *failures) add(e Error) {
	if f.told == nil {
		f.told = map[string]Error{}
	}
	if len(f.order) >= maxFailures {
		delete(f.told, f.order[0])
		f.order = f.order[1:]
	}
	f.order = append(f.order, e.CallID)
	f.told[e.CallID] = Error{Type: e.Type, Source: e.Source, Retryable: e.Retryable, CallID: e.CallID}
}

func (s *RunCalls) failed(e Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures.add(e)
}

// Failed returns type, source and flag, without the message, of the error that a
// call of this run was answered with; false when there was none, or so many
// newer ones that it is forgotten.
func (s *RunCalls) Failed(callID string) (Error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.failures.told[callID]
	return e, ok
}
