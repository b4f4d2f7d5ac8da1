package testenv

import (
	"testing"
	"time"
)

// patience is how long a test waits for anything, so that something that never happens does not take the time of all
// tests of a package. Machines that are busy with other tests are slow, never that slow.
const patience = 10 * time.Minute

// waiter is a test that can wait: *testing.T.
type waiter interface {
	testing.TB
	Deadline() (deadline time.Time, ok bool)
}

// until returns when a test that begins to wait gives up: before its package runs out of time.
func until(t waiter) time.Time {
	end := time.Now().Add(patience)
	if last, ok := t.Deadline(); ok && last.Add(-10*time.Second).Before(end) {
		return last.Add(-10 * time.Second)
	}
	return end
}

// Await polls until something has happened. It fails the test if that has not been seen after some minutes.
func Await(t waiter, what string, happened func() bool) {
	t.Helper()
	for end := until(t); !happened(); time.Sleep(5 * time.Millisecond) {
		if t.Context().Err() != nil || time.Now().After(end) {
			t.Fatalf("waited in vain for this: %s", what)
		}
	}
}

// Receive returns the next value of a channel. It fails the test if none has come after some minutes.
func Receive[V any](t waiter, what string, from <-chan V) V {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(time.Until(until(t))):
	case <-t.Context().Done():
	}
	t.Fatalf("waited in vain for this: %s", what)
	panic("unreachable")
}
