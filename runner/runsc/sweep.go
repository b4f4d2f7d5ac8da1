package runsc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/runner/bounds"
)

// Sweep removes the processes, the control group and the mounts of a sandbox
// whose Airlock has died.
func (d *Driver) Sweep(ctx context.Context, stateDir string) error {
	if err := killTree(ctx, stateDir); err != nil {
		return err
	}
	if err := bounds.Sweep(ctx, stateDir); err != nil {
		return err
	}
	return unmountBelow(stateDir)
}

// killTree kills the kernel process that was started for stateDir. It is found by its
// arguments, because its parent may have changed. All other processes of the sandbox end
// with it.
func killTree(ctx context.Context, stateDir string) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	mark := rootFlag(stateDir)
	err := procfs.KillMatching(ctx, func(args []string) bool {
		return args[0] == kernelName && slices.Contains(args[1:], mark)
	})
	if err != nil {
		return fmt.Errorf("killing the processes of %q: %w", stateDir, err)
	}
	return nil
}

// unmountBelow detaches whatever is mounted below dir, deepest first.
func unmountBelow(dir string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var points []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Sort(points)
	slices.Reverse(points)
	var errs []error
	for _, point := range points {
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			errs = append(errs, fmt.Errorf("unmounting %q: %w", point, err))
		}
	}
	return errors.Join(errs...)
}
