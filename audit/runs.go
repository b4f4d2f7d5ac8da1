package audit

import "slices"

// RunSummary is a run as a list shows it.
type RunSummary struct {
	ID    string  `json:"run_id"`
	Start *Record `json:"start,omitempty"` // nil when the log begins after it
	End   *Record `json:"end,omitempty"`   // nil while it runs, or when Airlock ended before it did
}

// Runs returns the newest n runs of the log, the newest first.
func Runs(dir string, n int) ([]RunSummary, error) {
	runs := map[string]*RunSummary{}
	var order []string // by their first record, oldest first
	err := each(dir, 1, `"kind":"run_`, func(r Record) error {
		if r.Kind != KindRunStart && r.Kind != KindRunEnd {
			return nil
		}
		run := runs[r.RunID]
		if run == nil {
			run = &RunSummary{ID: r.RunID}
			runs[r.RunID] = run
			order = append(order, r.RunID)
		}
		if r.Kind == KindRunStart {
			run.Start = &r
		} else {
			run.End = &r
		}
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
