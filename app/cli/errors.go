package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/store"
)

// usageError is the error of wrong usage. The exit code is 2.
type usageError struct{ problem, hint string }

func (e *usageError) Error() string { return e.problem }

// Hint returns what to type.
func (e *usageError) Hint() string { return e.hint }

// exitError ends the program with an exit code and without a message.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// hinted is an error with a hint for the user and an exit code.
type hinted struct {
	err  error
	hint string
	code int
}

func (e *hinted) Error() string { return e.err.Error() }

func (e *hinted) Unwrap() error { return e.err }

// Hint returns what to type.
func (e *hinted) Hint() string { return e.hint }

// report prints an error and its hint, and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return ExitDone
	}
	var exit exitError
	if errors.As(err, &exit) {
		return int(exit)
	}
	if errors.Is(err, syscall.EPIPE) { // the reader of stdout has closed it
		return ExitFailed
	}
	if onlyCanceled(err) { // a signal has interrupted the verb
		fmt.Fprintln(stderr, "airlock: interrupted")
		return ExitFailed
	}
	fmt.Fprintf(stderr, "airlock: %s\n", clean(err.Error())) // it may contain text of a server or a file
	var advised interface{ Hint() string }
	if errors.As(err, &advised) && advised.Hint() != "" {
		fmt.Fprintf(stderr, "hint: %s\n", clean(advised.Hint()))
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
	var wrong *usageError
	var withCode *hinted
	var inFile *config.Error
	var input *orchestrator.InputError
	var setup *system.SetupError
	var foreign *store.ForeignError
	switch {
	case errors.As(err, &wrong), errors.As(err, &inFile), errors.As(err, &input), errors.As(err, &setup), errors.As(err, &foreign):
		return ExitUsage
	case errors.As(err, &withCode):
		return withCode.code
	}
	return ExitFailed
}
