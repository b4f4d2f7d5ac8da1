package ctrd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner/bounds"
)

// sweepPatience bounds the removal of one sandbox that somebody else has started.
const sweepPatience = 10 * time.Second

// Sweep removes what is left of a sandbox whose Airlock has died: its processes
// and control group, and what it has in the daemon. The daemon may be about to
// finish what it was asked for, so this goes on until nothing is left.
func (d *Driver) Sweep(ctx context.Context, stateDir string) error {
	left, ok, err := readRecord(stateDir)
	if err != nil {
		return err
	}
	if ok && left.Address != d.opts.Address {
		return fmt.Errorf("it is with another containerd, at %q", left.Address)
	}
	ctx, cancel := context.WithTimeout(ctx, sweepPatience)
	defer cancel()
	for {
		alive, err := kill(stateDir)
		if err != nil {
			return err
		}
		if err := bounds.Sweep(ctx, stateDir); err != nil {
			return err
		}
		var removed error
		if ok {
			removed = d.daemon.remove(ctx, left.ID)
		}
		if !alive && removed == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("removing sandbox %q: %w", left.ID, ctx.Err()), removed)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// kill kills the processes of runsc that were started for stateDir, which carry
// that in their arguments, and reports whether there were any.
func kill(stateDir string) (alive bool, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, err
	}
	mark := "--root=" + filepath.Join(runscRoot(stateDir), namespace)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		// A zombie has no arguments; a process may be gone meanwhile.
		if err != nil || !slices.Contains(strings.Split(string(line), "\x00"), mark) {
			continue
		}
		alive = true
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return true, fmt.Errorf("killing process %d: %w", pid, err)
		}
	}
	return alive, nil
}
