package retention

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPruneRemovesTheOldAndTheOldestOfWhatIsTooMuch(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		size  int64
		items []Item // Path is the name alone
		left  []string
	}{
		"all fit": {10, []Item{{"a", ago(time.Minute), 5, false}, {"b", now, 5, false}},
			[]string{"a", "b"}},
		"exactly as old as may be": {10, []Item{{"a", ago(time.Hour), 5, false}}, []string{"a"}},
		"too old": {10, []Item{{"a", ago(time.Hour + 1), 1, false}, {"b", now, 5, false}},
			[]string{"b"}},
		"too much": {10, []Item{{"new", now, 6, false}, {"old", ago(time.Minute), 6, false}},
			[]string{"new"}},
		"one alone too much":    {10, []Item{{"a", now, 11, false}}, nil},
		"the first of one time": {10, []Item{{"a", now, 6, false}, {"b", now, 6, false}}, []string{"b"}},
		"an unfinished one counts, stays": {10, []Item{{"draft", ago(time.Minute), 6, true}, {"a", now, 6, false}},
			[]string{"draft"}},
		"an unfinished one that is old": {10, []Item{{"draft", ago(2 * time.Hour), 1, true}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, item := range c.items {
				c.items[i].Path = filepath.Join(dir, item.Path)
				if err := os.MkdirAll(filepath.Join(c.items[i].Path, "inside"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			gone := Item{Path: filepath.Join(dir, "gone"), Changed: ago(2 * time.Hour)}
			k := New(Limits{Keep: time.Hour, Size: c.size, Now: func() time.Time { return now }})
			if err := k.Prune(append(slices.Clone(c.items), gone)); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, entry := range entries {
				left = append(left, entry.Name())
			}
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPruningIsDueOncePerPartOfTheSize(t *testing.T) {
	k := New(Limits{Size: 16 * parts})
	var due []bool
	for range 4 {
		due = append(due, k.Due(8))
	}
	if diff := cmp.Diff([]bool{false, true, false, true}, due); diff != "" {
		t.Error(diff)
	}
}
