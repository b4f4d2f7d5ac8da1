package audit

import (
	"cmp"
	"fmt"
	"strings"
)

// ShowRuns gathers the records of several runs, by their whole IDs, from a period. Runs that are not in the log are
// missing.
func ShowRuns(dir string, ids map[string]bool, p Period) (map[string]*RunTree, error) {
	first, err := FirstSince(dir, p)
	if err != nil {
		return nil, err
	}
	runs := map[string]*RunTree{}
	err = each(dir, first, `"run_id":"`, func(r Record) error {
		if ids[r.RunID] {
			treeIn(runs, r.RunID).add(r)
		}
		return nil
	})
	return runs, err
}

// treeIn returns the tree of a run, which it adds to runs if needed.
func treeIn(runs map[string]*RunTree, id string) *RunTree {
	if runs[id] == nil {
		runs[id] = &RunTree{ID: id, Calls: []CallTree{}, Events: []Record{}}
	}
	return runs[id]
}

// SinceSuspended returns how often a run was suspended beyond its process, and what it did since the last time: whether
// it went on, and how many calls it made.
func (t *RunTree) SinceSuspended() (number int, resumed bool, calls int) {
	var last uint64
	for _, r := range t.Events {
		switch {
		case r.Kind == KindRunSuspend && r.Durable:
			// The run may have been suspended at other nodes of a cluster, too, and a node that takes it over repeats
			// the number. Earlier versions did not count.
			number, resumed, last = max(number, cmp.Or(r.Suspension, number+1)), false, r.Seq
		case r.Kind == KindRunResume:
			resumed = true
		}
	}
	for _, c := range t.Calls {
		if c.Intent != nil && c.Intent.Seq > last {
			calls++
		}
	}
	return number, resumed, calls
}

// maxJournal is how many calls Journal names.
const maxJournal = 20

// Journal returns a sentence about the calls that a run has made, with how they ended.
func (t *RunTree) Journal() string {
	var made []string
	for _, c := range t.Calls {
		if c.Intent == nil {
			continue
		}
		end := OutcomeUnknown
		if c.Outcome != nil {
			end = cmp.Or(c.Outcome.ErrorType, c.Outcome.Outcome)
		}
		made = append(made, fmt.Sprintf("%s/%s (%s)", c.Intent.ServerID, c.Intent.ToolName, end))
	}
	if len(made) == 0 {
		return "it had made no call"
	}
	sentence := fmt.Sprintf("it had made %d calls: ", len(made))
	if len(made) > maxJournal {
		return sentence + strings.Join(made[:maxJournal], ", ") + " and others"
	}
	return sentence + strings.Join(made, ", ")
}
