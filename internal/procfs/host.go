package procfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// maxWrappers is the maximum number of wrappers between a host and the program that it starts.
const maxWrappers = 20

// Host returns the process that started a program to talk to it over its standard input: the first
// ancestor whose own standard input is another file. Shells and launchers in between pass their
// input on.
func Host(pid int) (int, error) {
	starter, err := Starter(pid)
	if starter == pid {
		return Parent(pid)
	}
	return starter, err
}

// Starter is Host for a program that may have been started by a person: it returns the program itself if its standard
// input is not a pipe or a socket.
func Starter(pid int) (int, error) {
	input, err := os.Readlink(descriptor(pid))
	if err != nil || !strings.HasPrefix(input, "pipe:") && !strings.HasPrefix(input, "socket:") {
		return pid, nil
	}
	for range maxWrappers {
		if pid, err = Parent(pid); err != nil || pid <= 1 {
			return pid, err
		}
		if other, err := os.Readlink(descriptor(pid)); err != nil || other != input {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("more than %d processes read one input", maxWrappers)
}

func descriptor(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid), "fd", "0") }

// Name returns a name of a process that no other process has, also after a restart of the machine
// and in other containers.
func Name(pid int) (string, error) {
	if pid <= 0 {
		return "", fmt.Errorf("there is no process %d", pid)
	}
	started, err := started(pid)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%d/%s", machine(), pid, started), nil
}

// Lives reports whether a process exists. name is a result of Name. known is false if the process
// belongs to another container, whose processes this one cannot see.
func Lives(name string) (lives, known bool) {
	where, process, found := strings.Cut(name, "/")
	if found && !IsOfThisBoot(name) {
		boot, _, _ := strings.Cut(where, ":")
		ourBoot, _, _ := strings.Cut(machine(), ":")
		return false, boot != "" && ourBoot != ""
	}
	if where != machine() {
		return false, false
	}
	id, start, _ := strings.Cut(process, "/")
	pid, err := strconv.Atoi(id)
	if err != nil {
		return false, false
	}
	now, err := started(pid)
	return err == nil && now == start, true
}

// IsOfThisBoot reports whether a process was started after the last boot of this machine. name is a result of Name.
func IsOfThisBoot(name string) bool {
	boot, _, _ := strings.Cut(name, ":")
	ours, _, _ := strings.Cut(machine(), ":")
	return boot == ours
}

// machine names the current boot of the machine and the namespace of process IDs, which do not change while this
// process runs. A part that cannot be read is empty.
var machine = sync.OnceValue(func() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return string(bytes.TrimSpace(boot)) + ":" + strings.Trim(strings.TrimPrefix(namespace, "pid:"), "[]")
})

// started returns when a process started, in ticks since the machine did (proc_pid_stat(5)).
func started(pid int) (string, error) {
	const position = 22 - 3 // the first field after the name is the third
	fields, err := stat(pid)
	if err != nil {
		return "", err
	}
	if len(fields) <= position {
		return "", fmt.Errorf("the state of process %d cannot be read", pid)
	}
	return string(fields[position]), nil
}

// stat returns the fields of /proc/PID/stat after the name of the program, which may contain any
// characters, including closing parentheses.
func stat(pid int) ([][]byte, error) {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil, err
	}
	return bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:]), nil
}
