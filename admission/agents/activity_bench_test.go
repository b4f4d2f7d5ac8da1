package agents

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/airlock-mcp/airlock/audit"
)

// activityRows is the number of attempts in the log of BenchmarkActivity, made by many agents in turn.
const activityRows = 1_000_000

// The newest attempts of agents in a log of a million: of one that has just acted, of one that acts
// rarely and whose attempts are spread over the log, and of one whose only attempt is the first record.
func BenchmarkActivity(b *testing.B) {
	dir := b.TempDir()
	log, err := audit.Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	var writers errgroup.Group
	const callers = 64
	for c := range callers {
		writers.Go(func() error {
			for i := c; i < activityRows; i += callers {
				id := fmt.Sprintf("agent_%06d", i%many)
				if i == 0 {
					id = "agent_first"
				}
				err := log.Note(b.Context(), audit.Record{
					Kind:     audit.KindAction,
					Identity: audit.Identity{Principal: id, CallerKind: "agent", SessionID: fmt.Sprint("c", i)},
					Act:      audit.Act{ToolName: "calculate"},
					Ruling: audit.Ruling{Decision: "APPROVED", Policies: []string{"agents.cedar:low"}, Risk: "LOW",
						PolicyVersion: "sha256:0000000000000000000000000000000000000000000000000000000000000000"},
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := writers.Wait(); err != nil {
		b.Fatal(err)
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	for name, id := range map[string]string{"recent": fmt.Sprintf("agent_%06d", many-1), "rare": "agent_000007",
		"first": "agent_first", "unknown": "agent_unknown"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				entries, err := Activity(dir, id, audit.Period{}, 0, 10)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(entries)), "entries")
			}
		})
	}
}
