package testenv

import (
	"testing"
	"time"
)

// Await polls until something has happened. It fails the test if that has not been seen when the time of the test is
// almost over.
func Await(t interface {
	testing.TB
	Deadline() (deadline time.Time, ok bool)
}, what string, happened func() bool) {
	t.Helper()
	for ; !happened(); time.Sleep(5 * time.Millisecond) {
		if end, ok := t.Deadline(); t.Context().Err() != nil || ok && time.Until(end) < 10*time.Second {
			t.Fatalf("waited for this until the end of the test: %s", what)
		}
	}
}
