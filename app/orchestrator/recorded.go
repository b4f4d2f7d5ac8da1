package orchestrator

import (
	"fmt"

	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// recordedTools is how the tools of a snapshot are kept for a replay.
func recordedTools(snapshot *catalog.Snapshot) func() ([]byte, error) {
	return func() ([]byte, error) { return canon.Verbatim(snapshot.Servers()) }
}

// RecordedSnapshot returns the tools that a recorded run saw; nil when they were
// not kept, as by older versions.
func RecordedSnapshot(recording *replay.Recording) (*catalog.Snapshot, error) {
	if recording.Tools == nil {
		return nil, nil
	}
	var servers []catalog.Server
	if err := strictjson.UnmarshalOpen(recording.Tools, &servers); err != nil {
		return nil, fmt.Errorf("reading the tools of run %q: %w", recording.RunID, err)
	}
	snapshot, err := catalog.NewSnapshot(servers)
	if err != nil {
		return nil, fmt.Errorf("reading the tools of run %q: %w", recording.RunID, err)
	}
	if snapshot.Digest() != recording.Snapshot {
		return nil, fmt.Errorf("reading the tools of run %q: they are %s, not %s", recording.RunID, snapshot.Digest(),
			recording.Snapshot)
	}
	return snapshot, nil
}
