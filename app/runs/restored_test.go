package runs

import (
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
)

// Issue 27: after a restart of the daemon, the console showed a run that was suspended before it began.
func TestARestoredRunBeganBeforeThisProcess(t *testing.T) {
	first := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for name, restored := range map[string]bool{"restored": true, "new": false} {
		run := newRun(orchestrator.Request{}, func() {}, first)
		run.suspension.restored = restored
		run.began(orchestrator.Live{}, first.Add(time.Hour))
		want := first.Add(time.Hour)
		if restored {
			want = first
		}
		if got := run.Status().Began; !got.Equal(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
