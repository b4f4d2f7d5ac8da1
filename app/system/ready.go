package system

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/sandboxes"
	"github.com/airlock-mcp/airlock/runner"
)

var (
	errNotPooled = errors.New("no sandbox is ready yet")
	errNoTools   = errors.New("the lists of tools are still being read")
)

// IsStarting reports whether an error of Ready means that Airlock is still starting. Any other
// error of Ready is a failure.
func IsStarting(err error) bool {
	return errors.Is(err, errNoTools) || errors.Is(err, errNotPooled) || errors.Is(err, runner.ErrProving)
}

// Ready returns nil if the system can execute a run: the lists of tools are read, a sandbox has
// passed its checks, the pool has been filled once, and the directory of the audit log is writable.
// It is safe for concurrent use.
func (s *System) Ready(context.Context) error {
	if !s.catalog.IsOpen() {
		return errNoTools
	}
	switch err := s.sandboxes.Prove(sandboxes.ProofRequest(s.config, s.images)); {
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
	if err := s.Node().Check(); err != nil {
		return err
	}
	return writable(s.directories.Audit)
}

// writable returns an error if files cannot be written in a directory.
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

// Load returns the current load of the sandboxes.
func (s *System) Load() runner.Load { return s.sandboxes.Load() }

// RunLog returns the runs of the system's audit log.
func (s *System) RunLog() *runlog.Log { return s.runLog }
