package ctrd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/runner/bounds"
)

// sweepTimeout bounds the end of one sandbox that resists.
const sweepTimeout = 10 * time.Second

// Sweep removes what is left of a sandbox whose Airlock has died: its processes
// and control group, and what it has in the daemon, which may be about to finish
// its purpose.
func (d *Driver) Sweep(ctx context.Context, stateDir string) error {
	left, ok, err := readRecord(stateDir)
	if err != nil {
		return err
	}
	if ok && left.Address != d.opts.Address {
		return fmt.Errorf("it is with another containerd, at %q", left.Address)
	}
	if err := d.daemon.endTask(ctx, stateDir, left.ID); err != nil {
		return err
	}
	if err := bounds.Sweep(ctx, stateDir); err != nil || !ok {
		return err
	}
	return d.daemon.remove(ctx, left.ID)
}

// endTask ends a sandbox that does not end as usual: it kills what there is of it,
// the shim included, until nothing is left and the daemon has noticed. Without an
// id the daemon is not asked.
func (d *daemon) endTask(ctx context.Context, stateDir, id string) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	for {
		alive, err := kill(stateDir, id)
		if err != nil {
			return err
		}
		if id != "" {
			err = d.deleteTask(ctx, id)
		}
		if !alive && (err == nil || errdefs.IsUnavailable(err)) {
			return err // without a daemon there is nothing to wait for
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("ending sandbox %q: %w", id, ctx.Err()), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kill kills the processes that were started for a sandbox and reports whether
// there were any: those of runsc, which carry the StateDir in their arguments, and
// the shim, which carries the sandbox's name. When a shim is gone, the daemon
// removes what it had.
func kill(stateDir, id string) (alive bool, err error) {
	pids, err := procfs.Matching(func(args []string) bool {
		found := role(args, stateDir, id)
		alive = alive || found != none
		return found == member
	})
	if err != nil {
		return false, err
	}
	for _, pid := range pids {
		if err := procfs.Kill(pid); err != nil {
			return true, err
		}
	}
	return alive, nil
}

// The roles of processes of a sandbox.
type part int

const (
	none   part = iota // nothing
	helper             // the daemon started it, to make or remove the sandbox, and waits for it
	member             // it is the sandbox's own
)

// role returns which part of a sandbox a process is, by its arguments.
func role(args []string, stateDir, id string) part {
	if slices.Contains(args, "--root="+filepath.Join(runscRoot(stateDir), namespace)) {
		return member
	}
	at := slices.Index(args, "-id")
	if id == "" || at < 0 || at+1 >= len(args) || args[at+1] != id ||
		!strings.HasPrefix(filepath.Base(args[0]), "containerd-shim-") {
		return none
	}
	if last := args[len(args)-1]; last == "start" || last == "delete" {
		return helper
	}
	return member
}
