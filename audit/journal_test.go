package audit

import "testing"

// A node that takes a suspended run over repeats its number, also if it had the run before.
func TestSinceSuspended(t *testing.T) {
	suspended := func(seq uint64, number int) Record {
		r := Record{Seq: seq, Kind: KindRunSuspend}
		r.Durable, r.Suspension = true, number
		return r
	}
	resumed := Record{Seq: 9, Kind: KindRunResume}
	for name, test := range map[string]struct {
		events    []Record
		number    int
		continued bool
	}{
		"never":                       {nil, 0, false},
		"once":                        {[]Record{suspended(1, 1)}, 1, false},
		"twice":                       {[]Record{suspended(1, 1), suspended(2, 2)}, 2, false},
		"by an earlier version":       {[]Record{suspended(1, 0), suspended(2, 0)}, 2, false},
		"by an earlier version first": {[]Record{suspended(1, 0), suspended(2, 2)}, 2, false},
		"at this node, at another one, and here again": {[]Record{suspended(1, 1), suspended(2, 1)}, 1, false},
		"elsewhere, meanwhile":                         {[]Record{suspended(1, 1), suspended(2, 4)}, 4, false},
		"and continued":                                {[]Record{suspended(1, 1), resumed}, 1, true},
		"continued before": {[]Record{suspended(1, 1), resumed, suspended(10, 2)}, 2,
			false},
	} {
		tree := RunTree{Events: test.events}
		if number, continued, _ := tree.SinceSuspended(); number != test.number || continued != test.continued {
			t.Errorf("%s: %d and %v, want %d and %v", name, number, continued, test.number, test.continued)
		}
	}
}
