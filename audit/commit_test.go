package audit_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

// A record that is being written when the log is closed is either written or refused, and
// each confirmed record is in the log exactly once.
func TestCloseWhileManyWrite(t *testing.T) {
	for name, bytes := range map[string]int64{"one file": 0, "files that are full after a few records": 2000} {
		t.Run(name, func(t *testing.T) { closeWhileManyWrite(t, &audit.Options{SegmentBytes: bytes}) })
	}
}

func closeWhileManyWrite(t *testing.T, opts *audit.Options) {
	dir := t.TempDir()
	l := open(t, dir, opts)
	const callers, before = 16, 20 // so many calls each, before the log is closed
	var all, begun sync.WaitGroup
	var mu sync.Mutex // guards both
	confirmed := map[string]int{}
	refused := 0
	tell := func(id string, err error) bool {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			refused++
			if !errors.Is(err, audit.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
			return false
		}
		confirmed[id]++
		return true
	}
	begun.Add(callers)
	for n := range callers {
		all.Go(func() {
			for i := 0; ; i++ {
				if i == before {
					begun.Done()
				}
				id := fmt.Sprintf("call_%d_%d", n, i)
				if !tell(id, l.Append(t.Context(), intent(id))) {
					break
				}
				if !tell(id, l.Note(t.Context(), outcome(id))) {
					break
				}
			}
		})
	}
	begun.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if refused != callers {
		t.Errorf("got %d callers refused, want all %d", refused, callers)
	}
	got := map[string]int{}
	for _, r := range records(t, dir) {
		if r.CallID != "" && r.Outcome != audit.OutcomeUnknown { // the close ends what was begun
			got[r.CallID]++
		}
	}
	for id, times := range confirmed {
		if got[id] != times {
			t.Errorf("%s: got %d records, want the %d that were confirmed", id, got[id], times)
		}
	}
	if len(got) != len(confirmed) {
		t.Errorf("got records of %d calls, want %d", len(got), len(confirmed))
	}
	verified(t, dir)
}
