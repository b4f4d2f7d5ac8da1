package main

import (
	"runtime/debug"
	"slices"
	"time"
)

// idleAfter is when a kernel that still lives releases the memory that its
// start took: most runs are over by then, and what waits for one waits longer.
const idleAfter = time.Second

// releaseMemory returns the garbage of a start to the host, once, in `runsc boot`. Decoding
// a saved sandbox leaves more garbage than the kernel's heap, and an idle kernel would not
// collect it for minutes.
func releaseMemory(args []string) {
	if slices.Contains(args, "boot") {
		time.AfterFunc(idleAfter, debug.FreeOSMemory)
	}
}
