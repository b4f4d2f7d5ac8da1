package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// manyFiles writes a log of several files with so many runs, and then damages the first run's records, as a reader
// finds that looks at them. It returns the log's directory and its oldest file.
func manyFiles(t *testing.T, runs int) (dir, oldest string) {
	t.Helper()
	dir = t.TempDir()
	log, err := audit.Open(dir, &audit.Options{SegmentBytes: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for run := range runs {
		who := audit.Identity{RunID: fmt.Sprintf("run_%04d", run)}
		for _, r := range []audit.Record{{Kind: audit.KindRunStart, Identity: who},
			{Kind: audit.KindIntent, Identity: who, Act: audit.Act{CallID: fmt.Sprintf("call_%04d", run)}},
			{Kind: audit.KindRunEnd, Identity: who}} {
			if err := log.Note(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(dir, "audit-*"))
	if err != nil || len(list) < 3 {
		t.Fatalf("got files %v, %v, want some", list, err)
	}
	return dir, list[0]
}

// damage replaces a text in a file by one of the same length.
func damage(t *testing.T, path, old, by string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s does not contain %q", path, old)
	}
	if err == nil {
		err = os.WriteFile(path, bytes.ReplaceAll(text, []byte(old), []byte(by)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A list of the newest runs does not read the older files of the log.
func TestListsOfRunsReadTheEndOfTheLog(t *testing.T) {
	dir, oldest := manyFiles(t, 100)
	damage(t, oldest, `"run_id":"run_0000"`, `"run_id":"run_9999"`)
	runs, err := audit.Runs(dir, 5, audit.Period{})
	if err != nil || len(runs) != 5 || runs[4].ID != "run_0095" {
		t.Errorf("got %+v, %v, want runs 99 to 95", runs, err)
	}
	if _, err := audit.Runs(dir, 100, audit.Period{}); err == nil {
		t.Error("a list of all runs has read a damaged record, want an error")
	}
}

// A run that was taken over from another node has no start in this log. Its first record is where it began here.
func TestRunsWithoutAStartAreListed(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, r := range []struct {
		kind audit.Kind
		run  string
	}{
		{audit.KindRunStart, "run_old"}, {audit.KindRunStart, "run_a"}, {audit.KindRunEnd, "run_a"},
		{audit.KindRunSuspend, "run_taken"}, {audit.KindRunStart, "run_b"}, {audit.KindRunResume, "run_taken"},
		{audit.KindRunEnd, "run_taken"}, {audit.KindRunEnd, "run_old"},
	} {
		who := audit.Identity{RunID: r.run}
		if err := log.Append(t.Context(), audit.Record{Kind: r.kind, Identity: who}); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range [][]string{{}, {"run_b"}, {"run_b", "run_taken"}, {"run_b", "run_taken", "run_a"},
		{"run_b", "run_taken", "run_a", "run_old"}} {
		runs, err := audit.Runs(dir, n, audit.Period{})
		got := []string{}
		for _, run := range runs {
			got = append(got, run.ID)
			if run.ID != "run_b" && run.End == nil {
				t.Errorf("%d runs: %s has no end", n, run.ID)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d runs: got %v, %v, want %v", n, got, err, want)
		}
	}
}
