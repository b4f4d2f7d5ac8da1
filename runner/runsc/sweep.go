package runsc

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

// killTree kills the kernel process that was started for stateDir: it carries
// that in its arguments, whatever its parent is by now. What else the sandbox had
// ends with it.
func killTree(ctx context.Context, stateDir string) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	for {
		pids, err := processesOf(stateDir)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("killing process %d: %w", pid, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("killing the processes of %q: %w", stateDir, ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func processesOf(stateDir string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	mark := rootFlag(stateDir)
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil {
			continue // gone meanwhile
		}
		args := strings.Split(string(line), "\x00")
		// A zombie has no arguments, so it is not listed.
		if args[0] == kernelName && slices.Contains(args[1:], mark) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
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
