package runs

import (
	"errors"
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

// Issue 28: a node that had lost a run to another one, and was to continue it later, started none of the runs that it
// took over together with it.
func TestARunThatComesBackIsStarted(t *testing.T) {
	r := New(&executor{}, nil)
	defer r.Close()
	begin := func(code string) (*Run, error) {
		return r.Start(t.Context(), orchestrator.Request{ID: "run_1", Code: []byte(code), Caller: person("ann")})
	}
	former, err := begin("wait")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := begin("x"); !errors.Is(err, errGoesOn) {
		t.Errorf("a run that goes on was started again: %v", err)
	}
	former.Cancel()
	<-former.Done()
	again, err := begin("wait")
	if err != nil {
		t.Fatalf("the run was not started again: %v", err)
	}
	if got, _ := r.find("run_1"); got != again {
		t.Error("its ID names the former run")
	}
	if got := len(r.finished.order); got != 0 {
		t.Errorf("%d runs are kept as finished", got)
	}
}
