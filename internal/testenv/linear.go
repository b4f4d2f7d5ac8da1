package testenv

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	linearGrowth = 8 // how much larger the large input is
	linearSlack  = 3 // how much more than linear its cost may be
	linearTries  = 5
	linearFew    = 2 // how often the small input is measured

	// linearFloor is a processor time in nanoseconds below which the allocator decides about the ratio, not the input.
	linearFloor = 5_000_000
)

// Linear fails the test if the processor time of work grows much faster than its input. work gets
// inputs of n and of 8n bytes, or of a quarter of that if those take long enough. Only the ratio of the two times
// counts, of the thread that works, and one good try of five is enough, so that a busy machine does not matter.
func Linear(t testing.TB, name string, n int, work func(n int) func()) {
	t.Helper()
	for _, size := range []int{n / 4, n} {
		ratio, measured := growth(work(size), work(linearGrowth*size))
		if ratio > linearSlack {
			t.Errorf("%s: %d times the input costs %.0f times as much", name, linearGrowth, ratio*linearGrowth)
		}
		if measured {
			return
		}
	}
}

// growth returns how much more than linear the cost of the large input is. It is not measured if it is too low.
func growth(small, large func()) (ratio float64, measured bool) {
	for range linearTries {
		many := threadTime(large)
		if many < linearFloor {
			return 0, false
		}
		few := threadTime(func() {
			for range linearFew {
				small()
			}
		}) * linearGrowth / linearFew
		if ratio = float64(many) / float64(max(few, 1)); ratio <= linearSlack {
			break
		}
	}
	return ratio, true
}

// Repetitions are texts that make programs slow which read them more than once.
var Repetitions = []string{
	"a", " ", "\n", "\r\n", "\\", `\"`, `"`, "{", "[", "]", `{"a":`, "[[],", `{"a":1}` + "\n", "1", "-", "1e9,",
	"\u2028", "é", "\xff", "\x1b[31m", "\x00", "</a>", "\ufeff", "\u202e", "😀", "a b ", "日", "%41", "{\n", "'", "`",
}

// LinearTexts calls Linear for each of the functions with texts that repeat one of units.
func LinearTexts(t testing.TB, units []string, n int, functions map[string]func(text string)) {
	t.Helper()
	for name, f := range functions {
		for _, unit := range units {
			Linear(t, name+" of "+strings.ToValidUTF8(unit, "?"), n, func(n int) func() {
				text := strings.Repeat(unit, n/len(unit)+1)[:n]
				return func() { f(text) }
			})
		}
	}
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
