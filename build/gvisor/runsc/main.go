// Command runsc is gVisor's runsc as the pinned module has it, with what ../patches
// changes and four things added: the system call filter of the kernel process, compiled ahead (see
// ../seccomp), which gVisor's own build adds too and the module lacks; limits that
// `runsc boot` knows and `runsc create` does not pass on (limits.go); a kernel
// that releases the memory of its start (idle.go); and a second process, which
// unmounts /proc, that does not initialise a kernel first (unmount).
package main

import (
	"os"

	_ "github.com/airlock-mcp/airlock/build/gvisor/runsc/unmount"
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
