package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// Values of GOGC, a percentage, before the first garbage collection and after it. The first
// collection is made at a heap of 4 MB × firstCollection / 100.
const (
	firstCollection = 400
	collections     = 100 // the runtime's own default
)

// delayFirstCollection delays the first garbage collection until the heap has 16 MB, not 4 MB.
// Most verbs never reach 16 MB, and one collection costs them a tenth of their processor time.
// After the first collection, the runtime's default applies. If GOGC is set in the environment,
// delayFirstCollection does nothing.
func delayFirstCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(firstCollection)
	type sentinel struct{ _ *byte } // the pointer keeps it from sharing its memory with other objects
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, collections)
}
