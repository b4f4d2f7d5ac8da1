package cli

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/system"
)

// usageError is wrong usage: exit code 2.
type usageError struct{ problem, hint string }

func (e *usageError) Error() string { return e.problem }

// Hint says what to type.
func (e *usageError) Hint() string { return e.hint }

// exitError ends the program with a code; everything has been said already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// hinted is an error that knows what the user can do about it.
type hinted struct {
	err  error
	hint string
	code int
}

func (e *hinted) Error() string { return e.err.Error() }

func (e *hinted) Unwrap() error { return e.err }

// Hint says what to type.
func (e *hinted) Hint() string { return e.hint }

// report prints an error as one sentence and a hint, and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return ExitDone
	}
	var exit exitError
	if errors.As(err, &exit) {
		return int(exit)
	}
	if errors.Is(err, syscall.EPIPE) { // who read stdout has seen enough
		return ExitFailed
	}
	fmt.Fprintf(stderr, "airlock: %s\n", clean(err.Error())) // what a server or a file says may be in it
	var advised interface{ Hint() string }
	if errors.As(err, &advised) && advised.Hint() != "" {
		fmt.Fprintf(stderr, "hint: %s\n", clean(advised.Hint()))
	}
	return exitCode(err)
}

// exitCode tells wrong usage and configuration from what failed later.
func exitCode(err error) int {
	var wrong *usageError
	var withCode *hinted
	var inFile *config.Error
	var input *orchestrator.InputError
	var setup *system.SetupError
	switch {
	case errors.As(err, &wrong), errors.As(err, &inFile), errors.As(err, &input), errors.As(err, &setup):
		return ExitUsage
	case errors.As(err, &withCode):
		return withCode.code
	}
	return ExitFailed
}
