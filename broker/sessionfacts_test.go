package broker_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
)

// Rules see the facts of the session before the call: the number of calls, over all runs and of
// this run, and the servers that have answered.
func TestRulesSeeWhatTheSessionDid(t *testing.T) {
	engine, err := policies.Load(policies.File{Name: "facts.cedar", Source: []byte(`
		@id("all") permit (principal, action, resource);
		@id("leak") forbid (principal, action == Action::"files/write_file", resource) when { context.session.servers.contains("files") };
		@id("third") forbid (principal, action == Action::"files/count", resource) when { context.session.runCalls >= 2 };
		@id("fifth") forbid (principal, action == Action::"files/delete_file", resource) when { context.session.calls >= 4 };`)})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *broker.Options) { o.Policies = engine })
	first, second := f.open(), f.open() // two runs of one session
	read := call("read_file", `{"path":"a"}`)
	steps := []struct {
		name     string
		run      *broker.RunCalls
		call     broker.Call
		wantType string
	}{
		{"nothing was read yet", first, call("write_file", `{}`), ""},
		{"a server that answered a write was heard, too", first, call("write_file", `{}`), "PolicyDenied"},
		{"the third call of this run", first, call("count", `{}`), "PolicyDenied"},
		{"the first of another run, the fourth of the session", second, call("delete_file", `{}`), ""},
		{"the fifth of the session", second, call("delete_file", `{}`), "PolicyDenied"},
		{"what no rule forbids", second, read, ""},
	}
	for _, step := range steps {
		answer := step.run.Call(t.Context(), step.call)
		got := ""
		if answer.Error != nil {
			got = answer.Error.Type
		}
		if got != step.wantType {
			t.Errorf("%s: got %q (%+v), want %q", step.name, got, answer.Error, step.wantType)
		}
	}
	// Another session does not see them.
	other := open(t, f.Broker, broker.Run{ID: "run_9", Caller: caller.Caller{Principal: "ann", Kind: caller.Local, Session: "s9"}}, f.snapshot, nil)
	if answer := other.Call(t.Context(), call("write_file", `{}`)); answer.Error != nil {
		t.Errorf("another session: got %+v, want a call that happens", answer.Error)
	}
}

// A call that timed out counts as a read: the server may have reached the program or a person
// before the timeout (issue 23).
func TestAReadThatTimesOutCounts(t *testing.T) {
	engine, err := policies.Load(policies.File{Name: "facts.cedar", Source: []byte(`
		@id("all") permit (principal, action, resource);
		@id("leak") forbid (principal, action == Action::"files/write_file", resource) when { context.session.servers.contains("files") };`)})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *broker.Options) {
		o.Policies = engine
		o.Limits.Servers = map[string]broker.ServerLimits{"files": {CallTimeout: time.Millisecond}}
	})
	f.upstream.answer = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	run := f.open()
	checkAnswer(t, run.Call(t.Context(), call("read_file", `{"path":"x"}`)), "Timeout", "within 1ms")
	checkAnswer(t, run.Call(t.Context(), call("write_file", `{}`)), "PolicyDenied", "leak")
}
