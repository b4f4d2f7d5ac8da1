package listing

import (
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

// The records of a run that has moved are in the logs of two nodes, and some are in copies, too.
func TestRecordsOfSeveralLogsAreInOrder(t *testing.T) {
	at := func(seq uint64, clock, hash string) audit.Record {
		return audit.Record{Seq: seq, Time: "2026-11-30T" + clock + "Z", Hash: hash}
	}
	got := inOrder([]audit.Record{at(7, "10:00:00.000000", "c"), at(8, "10:00:02.000000", "d"),
		at(90, "09:00:00.000000", "a"), at(91, "09:00:00.000000", "b"), at(7, "10:00:00.000000", "c")})
	var hashes []string
	for i, r := range got {
		hashes = append(hashes, r.Hash)
		if r.Seq != uint64(i+1) {
			t.Errorf("record %d has the number %d", i, r.Seq)
		}
	}
	if !slices.Equal(hashes, []string{"a", "b", "c", "d"}) {
		t.Errorf("got %q", hashes)
	}
}
