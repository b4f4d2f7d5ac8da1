package verb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/store"
)

// UsageError is the error of wrong usage. The exit code is 2.
type UsageError struct{ Problem, Advice string }

// Usage returns the error for a wrong use, with advice.
func Usage(problem, advice string) *UsageError { return &UsageError{problem, advice} }

// Error returns the problem.
func (e *UsageError) Error() string { return e.Problem }

// Hint returns what to type.
func (e *UsageError) Hint() string { return e.Advice }

// ExitError ends the program with an exit code and without a message.
type ExitError int

// Error returns the exit code as text.
func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Hinted is an error with a hint for the user and an exit code.
type Hinted struct {
	Err    error
	Advice string
	Code   int
}

// WithHint returns an error with advice and an exit code.
func WithHint(err error, advice string, code int) *Hinted { return &Hinted{err, advice, code} }

// Error returns the error without the hint.
func (e *Hinted) Error() string { return e.Err.Error() }

// Unwrap returns the error without the hint.
func (e *Hinted) Unwrap() error { return e.Err }

// Hint returns what to type.
func (e *Hinted) Hint() string { return e.Advice }

// Report prints an error and its hint, and returns the exit code.
func Report(stderr io.Writer, err error) int {
	if err == nil {
		return ExitDone
	}
	if exit, ok := errors.AsType[ExitError](err); ok {
		return int(exit)
	}
	if errors.Is(err, syscall.EPIPE) { // the reader of stdout has closed it
		return ExitFailed
	}
	if onlyCanceled(err) { // a signal has interrupted the verb
		fmt.Fprintln(stderr, "airlock: interrupted")
		return ExitFailed
	}
	fmt.Fprintf(stderr, "airlock: %s\n", Clean(err.Error())) // it may contain text of a server or a file
	var advised interface{ Hint() string }
	if errors.As(err, &advised) && advised.Hint() != "" {
		fmt.Fprintf(stderr, "hint: %s\n", Clean(advised.Hint()))
	} else if hint := machineHint(err); hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
	return exitCode(err)
}

// machineHint returns a hint for an error that means that the machine has run out of a resource,
// such as disk space. It returns "" for all other errors.
func machineHint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space on that disk, or name another place: $AIRLOCK_HOME, audit.path"
	case errors.Is(err, syscall.EROFS):
		return "that file system is read-only: name another place, such as $AIRLOCK_HOME"
	case errors.Is(err, syscall.EMFILE):
		return "raise the number of files that a process may have open: ulimit -n, LimitNOFILE"
	case errors.Is(err, syscall.ENFILE):
		return "the machine has as many files open as it may: fs.file-max"
	}
	return ""
}

// onlyCanceled reports whether all errors in the tree of err are context.Canceled.
func onlyCanceled(err error) bool {
	if !errors.Is(err, context.Canceled) {
		return false
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if !onlyCanceled(one) {
				return false
			}
		}
		return true
	case interface{ Unwrap() error }:
		return onlyCanceled(e.Unwrap())
	}
	return true
}

// exitCode returns the exit code for an error. Wrong usage and a wrong configuration have a
// separate code.
func exitCode(err error) int {
	var wrong *UsageError
	var withCode *Hinted
	var inFile *config.Error
	var input *orchestrator.InputError
	var setup *setup.Error
	var foreign *store.ForeignError
	switch {
	case errors.As(err, &wrong), errors.As(err, &inFile), errors.As(err, &input), errors.As(err, &setup),
		errors.As(err, &foreign):
		return ExitUsage
	case errors.As(err, &withCode):
		return withCode.Code
	}
	return ExitFailed
}

// FailIf returns an error that ends a verb without a message, because the verb has already
// printed what failed.
func FailIf(failed bool) error {
	if failed {
		return ExitError(ExitFailed)
	}
	return nil
}
