package audit

import "slices"

// RunSummary is a run as a list shows it.
type RunSummary struct {
	ID    string  `json:"run_id"`
	Start *Record `json:"start,omitempty"` // nil when the log begins after it
	End   *Record `json:"end,omitempty"`   // nil while it runs, or when Airlock ended before it did
	// Suspended is since when it waits for a person without a sandbox; nil if it does not.
	Suspended *Record `json:"suspended,omitempty"`
}

// add takes note of a record of the run, if it is about its state.
func (s *RunSummary) add(r Record) {
	switch r.Kind {
	case KindRunStart:
		s.Start = &r
	case KindRunSuspend:
		s.Suspended = &r
	case KindRunResume:
		s.Suspended = nil
	case KindRunEnd:
		s.End, s.Suspended = &r, nil
	}
}

// Summary returns the run as a list shows it.
func (t *RunTree) Summary() RunSummary {
	s := RunSummary{ID: t.ID, Start: t.Start}
	for _, r := range t.Events {
		s.add(r)
	}
	if t.End != nil {
		s.add(*t.End)
	}
	return s
}

// Runs returns the newest n runs with records in the period, the newest first.
func Runs(dir string, n int, p Period) ([]RunSummary, error) {
	runs := map[string]*RunSummary{}
	var order []string // by their first record, oldest first
	first, err := FirstSince(dir, p)
	if err != nil {
		return nil, err
	}
	err = each(dir, first, `"kind":"run_`, func(r Record) error {
		if !p.Has(r) {
			return nil
		}
		run := runs[r.RunID]
		if run == nil {
			run = &RunSummary{ID: r.RunID}
			runs[r.RunID] = run
			order = append(order, r.RunID)
		}
		run.add(r)
		if len(order) > 2*n { // keep only what a list needs
			for _, id := range order[:len(order)-n] {
				delete(runs, id)
			}
			order = slices.Delete(order, 0, len(order)-n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	newest := make([]RunSummary, 0, min(n, len(order)))
	for _, id := range slices.Backward(order) {
		if len(newest) == n {
			break
		}
		newest = append(newest, *runs[id])
	}
	return newest, nil
}
