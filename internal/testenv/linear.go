package testenv

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	linearGrowth = 8 // how much larger the large input is
	linearSlack  = 3 // how much more than linear its cost may be
	linearTries  = 5

	// linearFloor is a processor time in nanoseconds below which the allocator decides about the ratio, not the input.
	linearFloor = 5_000_000
)

// Linear fails the test if the processor time of work grows much faster than its input. work gets
// inputs of n and of 8n bytes. Only the ratio of the two times counts, of the thread that works, and
// one good try of five is enough, so that a busy machine does not matter.
func Linear(t testing.TB, name string, n int, work func(n int) func()) {
	t.Helper()
	small, large := work(n), work(linearGrowth*n)
	ratio := 0.0
	for range linearTries {
		few := threadTime(func() {
			for range linearGrowth {
				small()
			}
		})
		many := threadTime(large)
		if ratio = float64(many) / float64(max(few, 1)); ratio <= linearSlack || many < linearFloor {
			return
		}
	}
	t.Errorf("%s: %d times the input costs %.0f times as much", name, linearGrowth, ratio*linearGrowth)
}

// threadTime returns the nanoseconds of processor time that f takes on its thread.
func threadTime(f func()) int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &before) != nil {
		return 0
	}
	f()
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &after) != nil {
		return 0
	}
	return after.Nano() - before.Nano()
}
