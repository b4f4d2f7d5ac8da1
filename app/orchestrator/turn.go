package orchestrator

import (
	"context"
	"runtime"
	"syscall"
	"time"
)

// redactionTimeout is the maximum time that a run waits to redact what leaves it. Then it redacts
// without a slot.
const redactionTimeout = 5 * time.Second

// muchToRedact is the maximum number of bytes that a run redacts without waiting for a slot.
// They take at most some tens of milliseconds.
const muchToRedact = 16 << 10

// inTurn calls redact, which redacts bytes that leave the run. Many bytes are redacted in a slot of
// the run's account. There is one slot for each processor, so an account with much to redact does not
// delay the runs of others. The processor time is added to that of the run.
func (r *run) inTurn(ctx context.Context, bytes int, redact func()) {
	if bytes > muchToRedact {
		waiting, cancel := context.WithTimeout(ctx, redactionTimeout)
		defer cancel()
		if slot, err := r.parts.cleaning.Wait(waiting, r.identity.Caller.Account()); err == nil {
			defer slot.Release()
		}
	}
	runtime.LockOSThread() // the time is measured by thread
	defer runtime.UnlockOSThread()
	before := threadTime()
	redact()
	r.cleaned.Add(int64(threadTime() - before))
}

// threadTime returns the processor time that the calling thread has taken.
func threadTime() time.Duration {
	const rusageThread = 1 // RUSAGE_THREAD of getrusage(2)
	var usage syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
