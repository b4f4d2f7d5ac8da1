package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstInherited is the first descriptor that is not a standard stream.
const firstInherited = 3

// CloseOnExec marks every descriptor except the standard streams as closed on exec.
// Files that this program opens have the mark already. Inherited ones, such as a file of
// the agent's host, must not reach the programs that it starts.
func CloseOnExec() error {
	err := unix.CloseRange(firstInherited, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	entries, err := os.ReadDir("/proc/self/fd") // Linux before 5.11
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= firstInherited {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// The fields of /proc/PID/stat that locate the environment (proc(5), counted from the
// field behind the program's name).
const (
	statEnvStart = 47
	statEnvEnd   = 48
)

// EraseEnvironment overwrites the memory that /proc/PID/environ shows, so that no other
// process reads there what this one was given. os.Getenv and os.Environ have copies and
// stay as they are.
func EraseEnvironment() error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= statEnvEnd {
		return errors.New("the kernel does not tell where the environment is")
	}
	start, err := strconv.ParseInt(string(fields[statEnvStart]), 10, 64)
	if err != nil {
		return err
	}
	end, err := strconv.ParseInt(string(fields[statEnvEnd]), 10, 64)
	if err != nil {
		return err
	}
	const most = 8 << 20 // bytes: more than the kernel passes to a program (execve(2))
	if start <= 0 || end < start || end-start > most {
		return fmt.Errorf("the environment cannot be from %#x to %#x", start, end)
	}
	os.Environ() // copies the environment if nothing has asked for it yet
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	_, err = memory.WriteAt(make([]byte, end-start), start)
	return err
}
