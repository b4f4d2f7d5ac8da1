package upstreams

import (
	"testing"
	"time"
)

// Changes wait longer for a snapshot of many tools than for one of few.
func TestThePauseGrowsWithTheSnapshot(t *testing.T) {
	for took, want := range map[time.Duration][2]time.Duration{
		0:               {settle, maxSettle},
		4 * time.Second: {400 * time.Millisecond, 4 * time.Second},
	} {
		if quiet, longest := pause(took); quiet != want[0] || longest != want[1] {
			t.Errorf("after a snapshot of %v: got %v and %v, want %v", took, quiet, longest, want)
		}
	}
}
