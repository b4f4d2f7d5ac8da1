package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoRun is returned for a run that is not in the log.
var ErrNoRun = errors.New("the audit log has no such run")

// RunTree contains all records of one run.
type RunTree struct {
	ID     string     `json:"run_id"`
	Start  *Record    `json:"start,omitempty"` // nil when the log begins after it
	End    *Record    `json:"end,omitempty"`   // nil while it runs
	Calls  []CallTree `json:"calls"`
	Events []Record   `json:"events"` // violations, by number

	places map[string]int // of the calls in Calls, by their IDs
}

// CallTree is one call of a run. Intent is nil when the call was refused,
// Outcome while it is under way.
type CallTree struct {
	ID        string   `json:"call_id"`
	Approvals []Record `json:"approvals,omitempty"`
	Intent    *Record  `json:"intent,omitempty"`
	Outcome   *Record  `json:"outcome,omitempty"`
	// Arguments are the original arguments, if ShowArguments found them.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// TreesOf gathers records by their runs.
func TreesOf(records []Record) map[string]*RunTree {
	runs := map[string]*RunTree{}
	for _, r := range records {
		if r.RunID != "" {
			treeIn(runs, r.RunID).add(r)
		}
	}
	return runs
}

// ShowPeriod gathers a run's records of a period. runID may be the beginning of an ID if no other run's ID has it.
func ShowPeriod(dir, runID string, p Period) (*RunTree, error) {
	first, err := FirstSince(dir, p)
	if err != nil {
		return nil, err
	}
	return show(dir, first, runID, p)
}

// ShowFrom gathers a run's records from the record with the number first on.
func ShowFrom(dir string, first uint64, runID string) (*RunTree, error) {
	return show(dir, first, runID, Period{})
}

func show(dir string, first uint64, runID string, p Period) (*RunTree, error) {
	if runID == "" {
		return nil, ErrNoRun
	}
	runs := map[string]*RunTree{}
	err := each(dir, first, `"run_id":"`+runID, func(r Record) error {
		if !strings.HasPrefix(r.RunID, runID) || !p.Has(r) {
			return nil
		}
		treeIn(runs, r.RunID).add(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if exact, ok := runs[runID]; ok {
		return exact, nil
	}
	switch len(runs) {
	case 0:
		return nil, fmt.Errorf("showing %q: %w", runID, ErrNoRun)
	case 1:
		for _, tree := range runs {
			return tree, nil
		}
	}
	return nil, fmt.Errorf("showing %q: %d runs begin so; give more of the ID", runID, len(runs))
}

func (t *RunTree) add(r Record) {
	switch r.Kind {
	case KindRunStart:
		t.Start = &r
	case KindRunEnd:
		t.End = &r
	case KindIntent:
		t.call(r.CallID).Intent = &r
	case KindOutcome:
		t.call(r.CallID).Outcome = &r
	case KindApproval:
		c := t.call(r.CallID)
		c.Approvals = append(c.Approvals, r)
	default:
		t.Events = append(t.Events, r)
	}
}

// call finds a call, or begins one. Calls stay in the order in which they first
// appear in the log.
func (t *RunTree) call(id string) *CallTree {
	at, ok := t.places[id]
	if !ok {
		if t.places == nil {
			t.places = map[string]int{}
		}
		at = len(t.Calls)
		t.places[id] = at
		t.Calls = append(t.Calls, CallTree{ID: id})
	}
	return &t.Calls[at]
}

// first is the number of the call's first record.
func (c CallTree) first() uint64 {
	for _, r := range slices.Concat(c.Approvals, deref(c.Intent), deref(c.Outcome)) {
		return r.Seq
	}
	return 0
}

func deref(r *Record) []Record {
	if r == nil {
		return nil
	}
	return []Record{*r}
}

// Steps merges calls and events by their numbers, as they happened.
func (t *RunTree) Steps() []Step {
	var steps []Step
	for i := range t.Calls {
		steps = append(steps, Step{t.Calls[i].first(), &t.Calls[i], nil})
	}
	for i := range t.Events {
		steps = append(steps, Step{t.Events[i].Seq, nil, &t.Events[i]})
	}
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(a.seq, b.seq) })
	return steps
}

// Step is one event of a run: a call or another record.
type Step struct {
	seq   uint64
	Call  *CallTree
	Event *Record // a violation, a decision of the risk gateway, a verdict
}
