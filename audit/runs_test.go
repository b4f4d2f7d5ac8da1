package audit_test

import (
	"fmt"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

func TestRunsAreListedNewestFirst(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	append := func(kind audit.Kind, run int) {
		t.Helper()
		if err := log.Append(t.Context(), audit.Record{Kind: kind,
			Identity: audit.Identity{RunID: fmt.Sprintf("run_%d", run)}}); err != nil {
			t.Fatal(err)
		}
	}
	for run := range 10 {
		append(audit.KindRunStart, run)
		append(audit.KindIntent, run)
		if run != 8 {
			append(audit.KindRunEnd, run)
		}
	}
	runs, err := audit.Runs(dir, 3, audit.Period{})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 3 {
		t.Fatalf("got %d runs, want 3", len(runs))
	}
	for i, want := range []string{"run_9", "run_8", "run_7"} {
		if ended := runs[i].End != nil; runs[i].ID != want || runs[i].Start == nil || ended != (want != "run_8") {
			t.Errorf("got %+v, want %s", runs[i], want)
		}
	}
	for _, test := range []struct {
		kind      audit.Kind
		suspended bool
	}{
		{audit.KindRunSuspend, true}, {audit.KindRunResume, false}, {audit.KindRunSuspend, true},
		{audit.KindRunEnd, false},
	} {
		append(test.kind, 8)
		if runs, err = audit.Runs(dir, 2, audit.Period{}); err != nil || (runs[1].Suspended != nil) != test.suspended {
			t.Errorf("after %s: got %+v, %v", test.kind, runs, err)
		}
		if tree, err := audit.ShowFrom(dir, 0, "run_8"); err != nil ||
			(tree.Summary().Suspended != nil) != test.suspended || (tree.Summary().End != nil) != (runs[1].End != nil) {
			t.Errorf("after %s: got %+v, %v, want what the list has", test.kind, tree, err)
		}
	}
	if all, err := audit.Runs(dir, 100, audit.Period{}); err != nil || len(all) != 10 {
		t.Errorf("got %d runs and %v, want all 10", len(all), err)
	}
}
