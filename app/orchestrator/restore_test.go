package orchestrator

import (
	"context"
	"testing"
	"testing/synctest"
)

// However many runs are to be restored, few are at a time, and none of them holds up the others for long (issue 29).
func TestFewRunsAreRestoredAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := make(restores, 2)
		first := all.begin(t.Context())
		all.begin(t.Context())
		begun := make(chan func(), 3)
		for range cap(begun) {
			go func() { begun <- all.begin(t.Context()) }()
		}
		for range 2 { // only once for a run
			first()
			synctest.Wait()
			if n := len(begun); n != 1 {
				t.Fatalf("%d runs have begun, want 1", n)
			}
		}
		for range cap(begun) { // those before them take too long
			(<-begun)()
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		all <- struct{}{}
		all <- struct{}{}
		all.begin(ctx)() // the run ends, and does not wait for its turn
		if len(all) != 2 {
			t.Errorf("%d are counted, want 2", len(all))
		}
	})
}
