package broker_test

import (
	"encoding/json"
	"testing"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/errortype"
)

// Issue 31: code cannot call a tool that is only for apps, also if it knows its name. A host can.
func TestCodeCallsNoToolsOfApps(t *testing.T) {
	f := newFixture(t, nil)
	raw := json.RawMessage(`{"name":"refresh"}`)
	refresh := catalog.Tool{ServerID: "files", Name: "refresh", InputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations: catalog.Annotations{ReadOnlyHint: yes()}, UI: catalog.UI{OnlyApps: true}, Raw: raw,
		Digest: canon.Digest(raw)}
	var err error
	f.snapshot, err = catalog.NewSnapshot([]catalog.Server{
		{ID: "files", Tools: tools(), Features: []catalog.Tool{refresh}}})
	if err != nil {
		t.Fatal(err)
	}
	calls := f.open()
	answer := calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "refresh"})
	if answer.OK || answer.Error.Type != errortype.UnknownTool {
		t.Errorf("a call of code: got %+v", answer)
	}
	answer = calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "refresh", Host: true})
	if answer.Error != nil && answer.Error.Type == errortype.UnknownTool {
		t.Errorf("a call of a host: got %+v", answer.Error)
	}
}
