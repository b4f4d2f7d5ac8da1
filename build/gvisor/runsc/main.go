// Command runsc is gVisor's runsc as the pinned module has it, with one thing
// added that gVisor's own build adds too and the module lacks: the system call
// filter of the kernel process, compiled ahead (see ../seccomp).
package main

import (
	"gvisor.dev/gvisor/runsc/cli/maincli"
	"gvisor.dev/gvisor/runsc/version"
)

// The linker sets version.version, which must be in the program for that.
var _ = version.Version()

func main() {
	addFilters()
	maincli.Main()
}
