// Package health reports whether Airlock can execute runs, and its current load as metrics.
package health

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/sandboxes"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/cluster"
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

// Health reports the state of the parts that runs need. Its methods are safe for concurrent use.
type Health struct {
	opts   Options
	pooled atomic.Bool // the pool has been filled once
}

// Options are the options of New. Node returns nil without a cluster. All are required.
type Options struct {
	Config    *config.Config
	Images    map[string]runner.Image // by language
	Home      string                  // the state directory
	Audit     string                  // the directory of the audit log
	Serving   bool
	Catalog   *upstreams.Catalog
	Sandboxes *runner.Runner
	Runs      *runs.Registry
	Desk      *approval.Desk
	Node      func() *cluster.Node
}

// New returns the health of open parts.
func New(opts Options) *Health { return &Health{opts: opts} }

// Ready returns nil if the system can execute a run: the lists of tools are read, a sandbox has
// passed its checks, the pool has been filled once, and the directory of the audit log is writable.
// It is safe for concurrent use.
func (h *Health) Ready(context.Context) error {
	if !h.opts.Catalog.IsOpen() {
		return errNoTools
	}
	switch err := h.opts.Sandboxes.Prove(sandboxes.ProofRequest(h.opts.Config, h.opts.Images)); {
	case errors.Is(err, runner.ErrProving):
		return err
	case err != nil:
		return fmt.Errorf("no sandbox can be used: %w", err)
	}
	if h.opts.Config.Sandbox.Pool > 0 && h.opts.Serving && !h.pooled.Load() {
		if h.opts.Sandboxes.Pooled() == 0 {
			return errNotPooled
		}
		h.pooled.Store(true) // later the pool may be empty for a moment
	}
	if err := h.opts.Node().Check(); err != nil {
		return err
	}
	return writable(h.opts.Audit)
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
func (h *Health) Load() runner.Load { return h.opts.Sandboxes.Load() }
