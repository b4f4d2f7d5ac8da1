package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/testenv"
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
				note := l.Note
				if i%2 == 0 {
					note = func(_ context.Context, r audit.Record) error { return l.NoteSoon(r) }
				}
				if !tell(id, note(t.Context(), outcome(id))) {
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

func TestOutcomesAreWrittenBehind(t *testing.T) {
	seen := func(t *testing.T, dir string) (ids []string) {
		for _, r := range records(t, dir)[1:] {
			ids = append(ids, string(r.Kind)+" "+r.CallID)
		}
		return ids
	}
	want := func(t *testing.T, dir string, want ...string) {
		t.Helper()
		if got := seen(t, dir); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	t.Run("by themselves", func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, dir, nil)
		if err := errors.Join(l.Append(t.Context(), intent("call_1")), l.NoteSoon(outcome("call_1"))); err != nil {
			t.Fatal(err)
		}
		testenv.Await(t, "the outcome is written", func() bool { return len(seen(t, dir)) == 2 })
	})
	t.Run("before what comes after them", func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, dir, nil)
		var wanted []string
		for i := range 50 {
			id := fmt.Sprintf("call_%d", i)
			if err := errors.Join(l.Append(t.Context(), intent(id)), l.NoteSoon(outcome(id))); err != nil {
				t.Fatal(err)
			}
			wanted = append(wanted, "intent "+id, "outcome "+id)
		}
		if err := l.Note(t.Context(), outcome("call_last")); err != nil {
			t.Fatal(err)
		}
		want(t, dir, append(wanted, "outcome call_last")...)
	})
	t.Run("by the end of the log", func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, dir, nil)
		if err := errors.Join(l.Append(t.Context(), intent("call_1")), l.NoteSoon(outcome("call_1")),
			l.Close()); err != nil {
			t.Fatal(err)
		}
		want(t, dir, "intent call_1", "outcome call_1")
		if err := l.NoteSoon(outcome("call_2")); !errors.Is(err, audit.ErrClosed) {
			t.Errorf("got %v after the end, want ErrClosed", err)
		}
		verified(t, dir)
	})
}
