package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Start starts the command inside the group; it never runs outside of it. Start must not
// be called after Remove.
func (g *Group) Start(cmd *exec.Cmd) error {
	if g.version == 1 {
		return g.thread.start(cmd)
	}
	dir, err := os.Open(g.Dirs()[0])
	if err != nil {
		return err
	}
	defer dir.Close()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD = true
	cmd.SysProcAttr.CgroupFD = int(dir.Fd())
	return cmd.Start()
}

// Add moves a process with all its threads into the group. Its earlier usage stays charged
// to its previous group.
func (g *Group) Add(pid int) error {
	for _, dir := range g.Dirs() {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("moving process %d into control group %q: %w", pid, g.name, err)
		}
	}
	return nil
}

// Members lists the processes in the group, this one never included.
func (g *Group) Members() ([]int, error) { return members(g.Dirs()) }

// Kill ends every process in the group (SIGKILL) and waits until none is left
// that could fork another. The group stays. An already removed group is fine.
func (g *Group) Kill(ctx context.Context) error { return kill(ctx, g.Dirs()) }

// Remove deletes the group, which must be empty or about to be. Calling it
// twice is fine.
func (g *Group) Remove(ctx context.Context) error {
	if g.thread != nil {
		g.thread.stop()
	}
	return remove(ctx, g.Dirs())
}

// Remove kills whatever is in the given directories of a group that an earlier
// process made, and deletes them. Directories that no longer exist are fine.
func Remove(ctx context.Context, dirs []string) error {
	for _, dir := range dirs {
		if !isGroup(dir) {
			return fmt.Errorf("removing control group: %q is not in a control group file system", dir)
		}
	}
	if err := kill(ctx, dirs); err != nil {
		return err
	}
	return remove(ctx, dirs)
}

func isGroup(dir string) bool {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	return errors.Is(err, unix.ENOENT) || err == nil &&
		(fs.Type == unix.CGROUP_SUPER_MAGIC || fs.Type == unix.CGROUP2_SUPER_MAGIC)
}

func members(dirs []string) ([]int, error) {
	seen := map[int]bool{os.Getpid(): true} // in version 1 our own thread sits in the group
	var pids []int
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		for word := range strings.FieldsSeq(string(data)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				return nil, fmt.Errorf("reading members of control group %q: %w", dir, err)
			}
			// 0 is a process of a PID namespace that we cannot see.
			if pid > 0 && !seen[pid] {
				seen[pid] = true
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

func kill(ctx context.Context, dirs []string) error {
	for _, dir := range dirs {
		// Version 2 since Linux 5.14; elsewhere there is no such file.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	}
	return poll(ctx, func() error {
		pids, err := members(dirs)
		if err != nil {
			return err
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("killing process %d: %w", pid, err)
			}
		}
		if len(pids) > 0 {
			return errBusy
		}
		return nil
	})
}

func remove(ctx context.Context, dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, poll(ctx, func() error {
			err := unix.Rmdir(dir)
			switch {
			case errors.Is(err, unix.ENOENT):
				return nil
			case errors.Is(err, unix.EBUSY):
				return errBusy // a process or our thread is still on its way out
			case err != nil:
				return fmt.Errorf("removing control group %q: %w", dir, err)
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

var errBusy = errors.New("control group is still in use")

// removalTimeout is how long processes that were killed may take to go.
const removalTimeout = 5 * time.Second

// poll repeats step until it returns something else than errBusy. The kernel
// offers no event for "a thread has left the group" that version 1 has too.
func poll(ctx context.Context, step func() error) error {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	wait := 100 * time.Microsecond
	for {
		err := step()
		if !errors.Is(err, errBusy) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		wait = min(2*wait, 10*time.Millisecond)
	}
}
