package orchestrator

import (
	"fmt"
	"testing"
	"time"
)

// Code can request interruptions without end: the more an interruption cost the host, the
// longer the host rests after it, and even longer after a failure.
func TestTheHostRestsFromInterruptions(t *testing.T) {
	for _, test := range []struct {
		took   time.Duration
		failed int
		want   time.Duration
	}{
		{0, 0, interruptAfter},
		{time.Millisecond, 0, interruptAfter},
		{50 * time.Millisecond, 0, 200 * time.Millisecond},
		{time.Minute, 0, maxRest},
		{0, 1, 2 * interruptAfter},
		{0, 3, 8 * interruptAfter},
		{50 * time.Millisecond, 1, 400 * time.Millisecond},
		{0, 1 << 30, maxRest},
		{time.Minute, 1 << 30, maxRest},
	} {
		t.Run(fmt.Sprint(test.took, " and ", test.failed, " failed"), func(t *testing.T) {
			if got := rest(test.took, test.failed); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
