// Package setup has what commands need before a system is open: its directories, and errors that advise how to
// correct the machine or the configuration.
package setup

import (
	"errors"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/runner"
)

// Error reports that the machine or the configuration lacks something, with advice on how to
// correct it.
type Error struct {
	Err    error
	Advice string // what to type or to read
}

// Error describes what is missing.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns the advice.
func (e *Error) Hint() string { return e.Advice }

// Advise adds a hint to the errors of parts that do not know which command
// corrects them. Other errors, and nil, come back as they are.
func Advise(err error) error {
	var advised interface{ Hint() string }
	var foreign *store.ForeignError
	switch {
	case errors.As(err, &foreign):
		return &Error{err, foreign.Advice}
	case errors.As(err, &advised):
		return err
	case errors.Is(err, images.ErrNotBuilt), errors.Is(err, images.ErrStale), errors.Is(err, images.ErrUnlocked):
		return &Error{err, "run `airlock images build`"}
	case errors.Is(err, images.ErrUnknown):
		return &Error{err, "airlock images list names them"}
	case errors.Is(err, runner.ErrBusy):
		return &busyError{err}
	}
	return err
}

// busyError is runner.ErrBusy with a hint.
type busyError struct{ error }

// Unwrap returns the cause.
func (e *busyError) Unwrap() error { return e.error }

// Hint returns the advice.
func (e *busyError) Hint() string { return "try again later, or raise sandbox.maxSandboxes" }
