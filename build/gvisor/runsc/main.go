// Command runsc is gVisor's runsc as the pinned module has it, with three things
// added: the system call filter of the kernel process, compiled ahead (see
// ../seccomp), which gVisor's own build adds too and the module lacks; limits that
// `runsc boot` knows and `runsc create` does not pass on (limits.go); and a kernel
// that releases the memory of its start (idle.go).
package main

import (
	"os"

	"gvisor.dev/gvisor/runsc/cli/maincli"
	"gvisor.dev/gvisor/runsc/version"
)

// The linker sets version.version, which must be in the program for that.
var _ = version.Version()

func main() {
	addFilters()
	releaseMemory(os.Args)
	os.Args = withAnnotatedLimits(os.Args)
	maincli.Main()
}
