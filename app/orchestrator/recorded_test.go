package orchestrator

import (
	"encoding/json"
	"testing"

	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
)

// The tools in a recording give the same snapshot again, including digests, withheld tools
// and missing servers.
func TestRecordedToolsMakeTheSameSnapshot(t *testing.T) {
	yes := true
	snapshot, err := catalog.NewSnapshot([]catalog.Server{
		{ID: "files", Warnings: []string{"one was left out"}, Tools: []catalog.Tool{
			{
				ServerID: "files", Name: "read", Title: "Read <b>", Description: "a & b \u2028 \u202e",
				InputSchema: json.RawMessage(
					`{"type":"object", "properties":{"path":{"type":"string","pattern":"<&>"}}}`),
				OutputSchema: json.RawMessage(`{"type":"object"}`),
				Annotations:  catalog.Annotations{ReadOnlyHint: &yes},
				Raw:          json.RawMessage(`{ "name": "read" }`), Digest: "sha256:abc",
			},
			{ServerID: "files", Name: "gone", InputSchema: json.RawMessage(`{}`), Raw: json.RawMessage(`{}`),
				Digest: "sha256:def", Withheld: true},
		}},
		{ID: "away", Problem: "it is not there"},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := recordedTools(snapshot)()
	if err != nil {
		t.Fatal(err)
	}
	recording := &replay.Recording{Tools: text}
	recording.Snapshot = snapshot.Digest()
	again, err := RecordedSnapshot(recording)
	if err != nil || again.Digest() != snapshot.Digest() {
		t.Fatalf("got %v, %v, want the same digest", again, err)
	}
	tool, ok := again.Tool("files", "read")
	if !ok || tool.Description != "a & b \u2028 \u202e" || *tool.Annotations.ReadOnlyHint != true ||
		len(tool.OutputSchema) == 0 {
		t.Errorf("got %+v", tool)
	}
	if gone, _ := again.Tool("files", "gone"); !gone.Withheld {
		t.Error("a withheld tool is usable again")
	}
	recording.Snapshot = "sha256:other"
	if _, err := RecordedSnapshot(recording); err == nil {
		t.Error("tools of another snapshot: got nil, want an error")
	}
	if none, err := RecordedSnapshot(&replay.Recording{}); none != nil || err != nil {
		t.Errorf("a recording of an older version: got %v, %v", none, err)
	}
}
