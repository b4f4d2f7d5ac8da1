package gvisor

import (
	"math"
	"runtime"

	"github.com/airlock-mcp/airlock/runner"
)

// Shown are numbers that gVisor's kernel is told about the host, each by a flag of
// `runsc boot`. What it is told, the code sees.
type Shown struct {
	Memory     int64 // --total-memory, bytes
	HostMemory int64 // --total-host-memory, bytes: see Show
	CPUs       int   // --cpu-num
}

// Show derives the numbers from a sandbox's limits. They also say how many files
// each writable file system may have: gVisor takes half the number of pages of
// the host's memory, so the host's memory is said to be twice as many pages.
func Show(l runner.Limits) Shown {
	const page, writable = 4096, 3 // writable file systems
	inodes := max(l.Inodes/writable, 1)
	cpus := min(max(int(math.Ceil(l.CPUs)), 2), runtime.NumCPU())
	return Shown{Memory: l.Memory, HostMemory: 2 * page * inodes, CPUs: cpus}
}
