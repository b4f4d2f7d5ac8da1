package approval

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// ErrOfHost says that an approval was given from within the agent's host, such
// as in a shell that the model drives. It may refuse a call from there, not
// approve one.
var ErrOfHost = errors.New("the answer comes from the agent's own host")

// maxAncestors bounds the walk to the first process.
const maxAncestors = 1000

// isWithin reports whether this process descends from the process host. The
// first process of a machine or container is the ancestor of all, and says
// nothing. This keeps a model that has a shell from answering in passing; one
// that detaches a process from its host is not kept.
func isWithin(host int) bool {
	if host <= 1 {
		return false
	}
	pid := os.Getpid()
	for range maxAncestors {
		parent, err := parentOf(pid)
		if err != nil || parent <= 1 {
			return false
		}
		if parent == host {
			return true
		}
		pid = parent
	}
	return false
}

// parentOf reads a process's parent (proc(5), /proc/pid/stat, field 4). The
// program's name before it may hold anything, closing parentheses too.
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, fmt.Errorf("process %d has no parent in its status", pid)
	}
	return strconv.Atoi(string(fields[1]))
}
