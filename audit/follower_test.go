package audit_test

import (
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

// A follower sees each record that it asks for once, however the log grows.
func TestAFollowerSeesWhatIsNew(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	f := audit.NewFollower(dir, `"kind":"run_`)
	var seen []string
	for _, run := range []string{"run_1", "run_2", "run_3"} {
		for _, kind := range []audit.Kind{audit.KindRunStart, audit.KindIntent, audit.KindRunEnd} {
			if err := log.Append(t.Context(), audit.Record{Kind: kind,
				Identity: audit.Identity{RunID: run}}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := f.Advance(
				func(r audit.Record) error {
					seen = append(
						seen, r.RunID+" "+string(r.Kind))
					return nil
				}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"run_1 run_start", "run_1 run_end", "run_2 run_start", "run_2 run_end", "run_3 run_start",
		"run_3 run_end"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
	tree, err := audit.ShowFrom(dir, 1, "run_2")
	if err != nil || tree.Start == nil || tree.End == nil || len(tree.Calls) != 1 {
		t.Errorf("got %+v, %v", tree, err)
	}
}
