package runner

import (
	"fmt"
	"time"
)

// DefaultLimits are generous to a program that filters and joins tool results,
// and small beside any machine that runs an agent host.
func DefaultLimits() Limits {
	return Limits{
		Memory:    512 << 20,
		CPUs:      1,
		PIDs:      128,
		Disk:      256 << 20,
		Inodes:    16384,
		OpenFiles: 1024,
		Timeout:   30 * time.Second,
		Stdout:    64 << 10,
		Stderr:    256 << 10,
		Output:    16 << 20,
	}
}

// The smallest limits with which a guest interpreter starts at all. Memory and
// disk are bytes.
const (
	minMemory    = 64 << 20
	minDisk      = 1 << 20
	minPIDs      = 8
	minInodes    = 64
	minOpenFiles = 16
	maxStream    = 64 << 20 // of what is kept of one stream: it is held in memory
)

// Check refuses limits that no sandbox can keep, naming the first one.
func (l Limits) Check() error {
	for _, bound := range []struct {
		name     string
		got, min int64
	}{
		{"memory", l.Memory, minMemory},
		{"disk", l.Disk, minDisk},
		{"pids", int64(l.PIDs), minPIDs},
		{"inodes", l.Inodes, minInodes},
		{"open files", int64(min(l.OpenFiles, 1<<40)), minOpenFiles},
		{"output", l.Output, 1},
	} {
		if bound.got < bound.min {
			return fmt.Errorf("the limit of %s is %d: it must be at least %d", bound.name, bound.got, bound.min)
		}
	}
	switch {
	case l.CPUs < 0.05:
		return fmt.Errorf("the limit of cpus is %g: it must be at least 0.05", l.CPUs)
	case l.Timeout <= 0:
		return fmt.Errorf("the limit of wall time is %v: it must be positive", l.Timeout)
	case l.Disk > l.Memory:
		return fmt.Errorf("the limit of disk is %d bytes, that of memory only %d: what a sandbox writes is held in "+
			"its memory", l.Disk, l.Memory)
	case l.Stream < 0:
		return fmt.Errorf("the limit of one stream is %d bytes: it must not be negative", l.Stream)
	case l.Stdout < 0 || l.Stderr < 0 || l.Stdout > maxStream || l.Stderr > maxStream:
		return fmt.Errorf("the limits of stdout and stderr are %d and %d bytes: they must be from 0 to %d", l.Stdout,
			l.Stderr, maxStream)
	}
	return nil
}
