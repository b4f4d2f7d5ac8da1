// Package procfs lists the host's processes and reads their arguments (proc(5)).
package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// PIDs returns the IDs of all processes at one moment, including this one.
func PIDs() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Arguments returns the command line of a process, with its name first. It returns nil for a
// process that has ended, including a zombie.
func Arguments(pid int) []string {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(line) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// Matching returns the other processes whose arguments match. Zombies never do.
func Matching(match func(arguments []string) bool) ([]int, error) {
	all, err := PIDs()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, pid := range all {
		if pid == os.Getpid() {
			continue
		}
		if arguments := Arguments(pid); len(arguments) > 0 && match(arguments) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Kill sends SIGKILL to a process. It returns nil if the process does not exist.
func Kill(pid int) error {
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing process %d: %w", pid, err)
	}
	return nil
}
