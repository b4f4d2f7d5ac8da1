package main

import (
	"runtime/debug"
	"slices"
	"time"
)

// idleAfter is when a kernel that still lives releases the memory that its
// start took: most runs are over by then, and what waits for one waits longer.
const idleAfter = time.Second

// releaseMemory returns the garbage of a start to the host, once, where this
// is `runsc boot`. Decoding a saved sandbox leaves more than the kernel's own
// heap, and a kernel that has nothing to do does not collect it for minutes.
func releaseMemory(args []string) {
	if slices.Contains(args, "boot") {
		time.AfterFunc(idleAfter, debug.FreeOSMemory)
	}
}
