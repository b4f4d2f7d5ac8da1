package broker_test

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
)

// A tool outside the profile cannot be called, even if the policies allow it, and for every snapshot
// the run has: the broker checks the caller's profile itself.
func TestCallsOutsideAProfile(t *testing.T) {
	f := newFixture(t, func(o *options) {
		o.Operator = policies.Operator{"files": {Allow: []string{policies.AllTools}}}
		o.Profiles = map[string]*catalog.Profile{"reading": {Name: "reading",
			Servers: []catalog.ProfileServers{{Server: "f*", Tools: []catalog.Pattern{"read_*"}}}}}
	})
	who := caller.Caller{Principal: "ann", Kind: caller.Local, Session: "s1", Profile: "reading"}
	calls := open(t, f.Broker, broker.Run{ID: "run_1", Caller: who}, f.snapshot, nil)
	if answer := calls.Call(t.Context(), call("read_file", `{"path":"x"}`)); !answer.OK {
		t.Errorf("within the profile: got %+v", answer.Error)
	}
	before := len(f.upstream.calls)
	for _, hidden := range []broker.Call{
		call("delete_file", `{}`), call("write_file", `{}`), call("changed", `{}`),
		{ServerID: "mail", Name: "send", Arguments: []byte(`{}`)},
	} {
		answer := calls.Call(t.Context(), hidden)
		if answer.OK || answer.Error.Type != "UnknownTool" || strings.Contains(answer.Error.Message, "withheld") ||
			strings.Contains(answer.Error.Message, "exited") {
			t.Errorf("%s.%s: got %+v, want that there is no such tool", hidden.ServerID, hidden.Name, answer)
		}
	}
	if len(f.upstream.calls) != before {
		t.Errorf("a server was called: %v", f.upstream.calls[before:])
	}
	for _, r := range f.records(t) {
		if r.Kind != audit.KindOperator && r.RunID != "" && r.Profile != "reading" {
			t.Errorf("got a record of profile %q, want reading", r.Profile)
		}
	}

	who.Profile = "unknown"
	if _, err := f.Open(broker.Run{ID: "run_2", Caller: who}, f.snapshot, nil); err == nil ||
		!strings.Contains(err.Error(), `no profile "unknown"`) {
		t.Errorf("a caller with an unknown profile: got %v, want a refusal", err)
	}
}

// The error for a call to an unavailable server is retryable if Airlock will retry the server.
func TestCallsToServersThatComeBack(t *testing.T) {
	for _, retrying := range []bool{false, true} {
		f := newFixture(t, nil)
		snapshot, err := catalog.NewSnapshot(
			[]catalog.Server{{ID: "mail", Problem: "the program exited with status 1", Retrying: retrying}})
		if err != nil {
			t.Fatal(err)
		}
		f.snapshot = snapshot
		answer := f.open().Call(t.Context(), broker.Call{ServerID: "mail", Name: "send", Arguments: []byte(`{}`)})
		if answer.OK || answer.Error.Type != "UnknownTool" || answer.Error.Retryable != retrying {
			t.Errorf("retrying %v: got %+v", retrying, answer.Error)
		}
	}
}
