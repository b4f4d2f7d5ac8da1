package system

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/runner"
)

var (
	errNotPooled = errors.New("no sandbox is ready yet")
	errNoTools   = errors.New("the lists of tools are still being read")
)

// IsStarting reports whether an error of Ready says that Airlock has not come so far yet;
// any other says that something is wrong.
func IsStarting(err error) bool {
	return errors.Is(err, errNoTools) || errors.Is(err, errNotPooled) || errors.Is(err, runner.ErrProving)
}

// Ready returns why no run could be made now, nil where one could: the lists of
// tools are read, a sandbox has proved itself, the pool has been filled once, and the
// audit log's directory can be written. It may be called concurrently.
func (s *System) Ready(context.Context) error {
	if s.catalog.opened != nil {
		select {
		case <-s.catalog.opened:
		default:
			return errNoTools
		}
	}
	switch err := s.sandboxes.Prove(proofRequest(s.config, s.images)); {
	case errors.Is(err, runner.ErrProving):
		return err
	case err != nil:
		return fmt.Errorf("no sandbox can be used: %w", err)
	}
	if s.config.Sandbox.Pool > 0 && s.opts.Serving && !s.pooled.Load() {
		if s.sandboxes.Pooled() == 0 {
			return errNotPooled
		}
		s.pooled.Store(true) // later the pool may be empty for a moment
	}
	return writable(s.directories.Audit)
}

// writable returns why nothing can be written into a directory.
func writable(directory string) (err error) {
	probe, err := os.CreateTemp(directory, ".ready-*")
	if err != nil {
		return fmt.Errorf("the audit log cannot be written: %w", err)
	}
	defer func() {
		err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
	}()
	if _, err := probe.Write(make([]byte, 4096)); err != nil { // a full disk makes empty files
		return fmt.Errorf("the audit log cannot be written: %w", err)
	}
	return nil
}

// Notices says what is wrong now with the servers that callers of a profile see. It
// may be called concurrently.
func (s *System) Notices(profile string) []Notice { return s.catalog.notices(profile) }

// Load is what the sandboxes are at work on now.
func (s *System) Load() runner.Load { return s.sandboxes.Load() }
