package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
)

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

// Runs returns the newest n runs with records in the period, the newest first. It reads the log from its end, up to the
// start of the last of them.
func Runs(dir string, n int, p Period) ([]RunSummary, error) {
	if n <= 0 {
		return []RunSummary{}, nil
	}
	first, err := FirstSince(dir, p)
	if err != nil {
		return nil, err
	}
	list, err := segments(dir)
	if err != nil {
		return nil, err
	}
	found := &newestRuns{most: n, begun: map[string][]Record{}}
	for i, s := range slices.Backward(list) {
		if found.whole() || i+1 < len(list) && list[i+1].first <= first {
			break
		}
		if err := found.read(s, p); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return found.summaries(), nil
}

// newestRuns are the newest runs of a log that is read from its end.
type newestRuns struct {
	most    int
	started [][]Record          // the newest runs whose start was read, at most most; records are newest first
	begun   map[string][]Record // the other runs that can be among the newest
}

// whole reports whether older records cannot change the list.
func (l *newestRuns) whole() bool {
	if len(l.started) < l.most {
		return false
	}
	oldest := began(l.started[l.most-1])
	for _, records := range l.begun {
		if began(records) > oldest { // it began earlier, or was taken over from another node
			return false
		}
	}
	return true
}

// began returns the number of the oldest record that was read of a run.
func began(records []Record) uint64 { return records[len(records)-1].Seq }

// read reads one file.
func (l *newestRuns) read(s segment, p Period) error {
	const word = `"kind":"run_`
	mentioned := func(text []byte) bool { return bytes.Contains(text, []byte(word)) }
	return eachLineBackward(s.path, mentioned, func(line []byte) (more bool, err error) {
		if !mentioned(line) {
			return true, nil
		}
		r, err := open(line)
		if err != nil {
			return false, err
		}
		if p.Has(r) {
			l.add(r)
		}
		return true, nil
	})
}

// add takes note of the newest record that is older than those before.
func (l *newestRuns) add(r Record) {
	records, known := l.begun[r.RunID]
	full := len(l.started) == l.most
	if full && !known {
		return // it began before all that are in the list
	}
	records = append(records, r)
	if r.Kind != KindRunStart {
		l.begun[r.RunID] = records
		return
	}
	delete(l.begun, r.RunID)
	if !full {
		l.started = append(l.started, records)
	}
}

// summaries returns the list.
func (l *newestRuns) summaries() []RunSummary {
	all := slices.AppendSeq(l.started, maps.Values(l.begun))
	slices.SortFunc(all, func(a, b []Record) int { return cmp.Compare(began(b), began(a)) })
	newest := make([]RunSummary, 0, min(l.most, len(all)))
	for _, records := range all[:min(l.most, len(all))] {
		run := RunSummary{ID: records[0].RunID}
		for _, r := range slices.Backward(records) {
			run.add(r)
		}
		newest = append(newest, run)
	}
	return newest
}
