// Package cleanup undoes half-done work: each acquisition registers its
// release on the next line, and success keeps everything.
package cleanup

import "errors"

// Build returns what build makes. Where it fails, all that it registered is
// released again, and the zero value is returned.
func Build[T any](build func(undo *Stack) (T, error)) (T, error) {
	var undo Stack
	made, err := build(&undo)
	if err != nil {
		var none T
		return none, errors.Join(err, undo.Run())
	}
	return made, nil
}

// Stack is a list of releases, run last to first. The zero value is ready.
// It is not for concurrent use.
type Stack struct {
	undo []func() error
}

// Add registers a release to be called by Run.
func (s *Stack) Add(release func() error) { s.undo = append(s.undo, release) }

// Keep forgets all releases: the work succeeded and lives on.
func (s *Stack) Keep() { s.undo = nil }

// Run calls every release, last first, each once, and joins their errors.
// After Keep it does nothing.
func (s *Stack) Run() error {
	var errs []error
	for len(s.undo) > 0 {
		last := len(s.undo) - 1
		release := s.undo[last]
		s.undo = s.undo[:last]
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

// Take hands the releases over to another stack, for a value that outlives the
// function which built it, and leaves this one empty.
func (s *Stack) Take() *Stack {
	taken := &Stack{undo: s.undo}
	s.undo = nil
	return taken
}
