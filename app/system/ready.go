package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/airlock-mcp/airlock/runner"
)

// proveTime is how long Ready waits for the self-test of the sandboxes.
const proveTime = 100 * time.Millisecond

var (
	errNotProved = errors.New("the self-test of the sandboxes is not over")
	errNotPooled = errors.New("no sandbox is ready yet")
	errNoTools   = errors.New("the lists of tools are still being read")
)

// Ready returns why no run could be made now, nil where one could: the lists of
// tools are read, the self-test has passed, the pool has been filled once, and the
// audit log's directory can be written. It may be called concurrently.
func (s *System) Ready(ctx context.Context) error {
	if s.catalog.opened != nil {
		select {
		case <-s.catalog.opened:
		default:
			return errNoTools
		}
	}
	proving, stop := context.WithTimeout(ctx, proveTime)
	defer stop()
	if err := s.sandboxes.Prove(proving); err != nil {
		if proving.Err() != nil {
			return errNotProved
		}
		return fmt.Errorf("the sandboxes did not pass their self-test: %w", err)
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
