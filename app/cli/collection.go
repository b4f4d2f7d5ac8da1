package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// Percentages of garbage (the variable GOGC of Go's runtime), until the first collection
// and from then on. The first one comes at a heap of 4 MB × firstCollection / 100.
const (
	firstCollection = 400
	collections     = 100 // the runtime's own default
)

// delayFirstCollection has the first collection of garbage wait for a heap of 16 MB in
// place of 4, which most verbs never reach: one collection costs them a tenth of their
// processor time. After the first, the runtime collects as by default. Where GOGC says
// when to collect, it decides alone.
func delayFirstCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(firstCollection)
	type sentinel struct{ _ *byte } // with a pointer, it does not share its memory with others
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, collections)
}
