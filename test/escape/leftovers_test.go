package escape_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/runner"
)

// leftovers lists what exists of sandboxes that should be gone: processes,
// mounts, control groups and directories.
func leftovers(sandboxes []runner.Spec, state string) ([]string, error) {
	var left []string
	processes, err := leftProcesses(sandboxes)
	left = append(left, processes...)
	mounts, mountErr := os.ReadFile("/proc/self/mountinfo")
	groups, groupErr := leftGroups(sandboxes)
	left = append(left, groups...)
	for _, s := range sandboxes {
		if strings.Contains(string(mounts), filepath.Dir(s.StateDir)) {
			left = append(left, fmt.Sprintf("a mount of %s", s.ID))
		}
	}
	directories, directoryErr := filepath.Glob(filepath.Join(state, "*", "sb-*"))
	for _, directory := range directories {
		left = append(left, "the directory "+directory)
	}
	return left, errors.Join(err, mountErr, groupErr, directoryErr)
}

// leftProcesses finds processes by their arguments and by their control group.
func leftProcesses(sandboxes []runner.Spec) ([]string, error) {
	pids, err := procfs.PIDs()
	if err != nil {
		return nil, err
	}
	var left []string
	for _, pid := range pids {
		// Processes that end meanwhile have neither.
		arguments := strings.Join(procfs.Arguments(pid), " ")
		groups, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
		for _, s := range sandboxes {
			if strings.Contains(arguments, s.StateDir) || strings.Contains(string(groups), groupName(s)+"\n") {
				left = append(left, fmt.Sprintf("process %d of %s: %s", pid, s.ID, arguments))
			}
		}
	}
	return left, nil
}

// leftGroups finds control groups wherever they may be.
func leftGroups(sandboxes []runner.Spec) ([]string, error) {
	names := map[string]bool{}
	for _, s := range sandboxes {
		names[groupName(s)] = true
	}
	var left []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a group of another process that is gone meanwhile
		case err != nil:
			return err
		case entry.IsDir() && names[entry.Name()]:
			left = append(left, "the control group "+path)
		}
		return nil
	})
	return left, err
}

func groupName(s runner.Spec) string { return "airlock-" + s.ID }
