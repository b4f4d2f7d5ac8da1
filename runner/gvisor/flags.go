package gvisor

import (
	"math"
	"runtime"
	"strconv"

	"github.com/airlock-mcp/airlock/runner"
)

// Flag is a flag of runsc, without its dashes.
type Flag struct{ Name, Value string }

// String is the flag as an argument of a command.
func (f Flag) String() string { return "--" + f.Name + "=" + f.Value }

// Flags returns the global runsc flags that both drivers pass for every sandbox.
// A comment explains each one that differs from runsc's default.
func Flags() []Flag {
	return []Flag{
		{"platform", "systrap"},
		{"network", "none"},
		{"host-uds", "open"},  // the broker's socket is the only one that the code can open
		{"directfs", "false"}, // the kernel process opens no file of the host
		// everything writable is a tmpfs, so nothing is written under a file system
		{"overlay2", "none"},
		{"ignore-cgroups", "true"},          // Airlock places the processes itself
		{"file-access-mounts", "exclusive"}, // the mounted file system has no other writer
	}
}

// Resources returns the flags of `runsc boot` that describe the host to gVisor's kernel.
// The code in the sandbox sees these values. They also bound the number of files in each
// writable file system: gVisor allows one file per two pages of host memory, so the
// reported host memory is two pages per allowed file.
func Resources(l runner.Limits) []Flag {
	const page, writable = 4096, 3 // writable file systems
	inodes := max(l.Inodes/writable, 1)
	cpus := min(max(int(math.Ceil(l.CPUs)), 2), runtime.NumCPU())
	return []Flag{
		{"total-memory", strconv.FormatInt(l.Memory, 10)},
		{"total-host-memory", strconv.FormatInt(2*page*inodes, 10)},
		{"cpu-num", strconv.Itoa(cpus)},
	}
}

// Annotation is the annotation of an OCI configuration that has Airlock's own
// build of runsc set a flag of Resources, for those who start it through
// `runsc create`, which passes none on.
func Annotation(f Flag) string { return "io.airlock." + f.Name }
