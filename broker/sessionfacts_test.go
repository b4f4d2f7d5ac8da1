package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	servers "github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
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
	f := newFixture(t, func(o *options) { o.Policies = engine })
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
	other := open(t, f.Broker, broker.Run{ID: "run_9",
		Caller: caller.Caller{Principal: "ann", Kind: caller.Local, Session: "s9"}}, f.snapshot, nil)
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
	f := newFixture(t, func(o *options) {
		o.Policies = engine
		o.Limits.Servers = map[string]admission.ServerLimits{"files": {CallTimeout: time.Millisecond}}
	})
	f.upstream.answer = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	run := f.open()
	checkAnswer(t, run.Call(t.Context(), call("read_file", `{"path":"x"}`)), "Timeout", "within 1ms")
	checkAnswer(t, run.Call(t.Context(), call("write_file", `{}`)), "PolicyDenied", "leak")
}

// kept is a store of facts that can fail.
type kept struct {
	err     error // of both methods
	servers []string
	reads   int
	added   []string
}

func (k *kept) Servers(context.Context, caller.Caller) ([]string, error) {
	k.reads++
	return k.servers, k.err
}

func (k *kept) Add(_ context.Context, _ caller.Caller, server string) error {
	k.added = append(k.added, server)
	return k.err
}

// Whether a conversation has read a server is restored from the store before its first call and
// written before the intent of a read. If it cannot be restored, every rule about the session denies,
// permits included; if it cannot be written, the call is not made (issue 23).
func TestFactsAreRestoredOrDeny(t *testing.T) {
	engine, err := policies.Load(policies.File{Name: "facts.cedar", Source: []byte(`
		@id("reads") permit (principal, action == Action::"files/read_file", resource);
		@id("count") permit (principal, action == Action::"files/count", resource) when { context.session.calls < 100 };
		@id("write") permit (principal, action == Action::"files/write_file", resource);
		@id("leak") forbid (principal, action == Action::"files/write_file", resource) when { context has session && context.session.servers.contains("crm") };`)})
	if err != nil {
		t.Fatal(err)
	}
	const read, write, count = "read_file", "write_file", "count"
	for name, test := range map[string]struct {
		store *kept
		want  map[string]string // tool → error type
		added int
	}{
		"nothing was read": {&kept{}, map[string]string{read: "", write: "", count: "OutputValidationError"}, 1},
		"another server was": {&kept{servers: []string{"crm"}}, map[string]string{read: "", write: "PolicyDenied"},
			1},
		"it was read already": {&kept{servers: []string{"files"}}, map[string]string{read: "", write: ""}, 0},
		"it cannot be read": {&kept{err: errors.New("no")},
			map[string]string{write: "PolicyDenied", count: "PolicyDenied"}, 0},
		"it cannot be written": {&kept{err: errors.New("no")}, map[string]string{read: "SandboxError"}, 1},
		"no store":             {nil, map[string]string{read: "", write: "PolicyDenied", count: "PolicyDenied"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *options) {
				o.Policies = engine
				if test.store != nil {
					o.Taint = test.store
				}
			})
			run := open(t, f.Broker, broker.Run{ID: "run_1", Caller: caller.Caller{Principal: "ann", Kind: caller.Local,
				Session: "s", Lineage: "credential 1"}}, f.snapshot, nil)
			arguments := map[string]string{read: `{"path":"a"}`, write: `{}`, count: `{}`}
			for tool, want := range test.want {
				got := ""
				if answer := run.Call(t.Context(), call(tool, arguments[tool])); answer.Error != nil {
					got = answer.Error.Type
				}
				if got != want {
					t.Errorf("%s: got %q, want %q", tool, got, want)
				}
			}
			if test.store != nil && len(test.store.added) != test.added {
				t.Errorf("got %v written, want %d", test.store.added, test.added)
			}
		})
	}
}

// Issue 23: a run of another session of the same conversation reads a server, and passes the data on through a second
// server to a run that began before. Rules about that run saw the facts at its start.
func TestARunSeesWhatOtherSessionsReadMeanwhile(t *testing.T) {
	engine, err := policies.Load(policies.File{Name: "facts.cedar", Source: []byte(`
		@id("all") permit (principal, action, resource);
		@id("leak") forbid (principal, action == Action::"files/write_file", resource)
		when { context.session.servers.contains("crm") };`)})
	if err != nil {
		t.Fatal(err)
	}
	store := &kept{}
	f := newFixture(t, func(o *options) { o.Policies, o.Taint = engine, store })
	run := open(t, f.Broker, broker.Run{ID: "run_1", Caller: caller.Caller{Principal: "ann", Kind: caller.Local,
		Session: "s", Lineage: "credential 1"}}, f.snapshot, nil)
	for _, test := range []struct {
		read []string // by all sessions of the conversation
		err  error
		want string
	}{
		{nil, nil, ""}, {[]string{"crm"}, nil, "PolicyDenied"}, {nil, nil, "PolicyDenied"},
		{nil, errors.New("no"), "PolicyDenied"},
	} {
		store.servers, store.err = test.read, test.err
		got := ""
		if answer := run.Call(t.Context(), call("write_file", `{}`)); answer.Error != nil {
			got = answer.Error.Type
		}
		if got != test.want {
			t.Errorf("after the conversation has read %q: got %q, want %q", test.read, got, test.want)
		}
	}
}

// changing is a curious server that changes something before it asks.
type changing struct {
	curious
	change func()
}

func (c *changing) CallFor(ctx context.Context, relay servers.Relay, serverID, name string,
	arguments json.RawMessage) (json.RawMessage, error) {
	c.change()
	return c.curious.CallFor(ctx, relay, serverID, name, arguments)
}

// Issue 32: rules that do not depend on the session do not cost a look at the disk for each call. Rules that come into
// force during a call see that its facts were not read, and deny; later calls have them.
func TestFactsAreReadIfRulesDependOnThem(t *testing.T) {
	rules := func(more string) admission.Rules {
		engine, err := policies.Load(policies.File{Name: "facts.cedar", Source: []byte(
			`@id("all") permit (principal, action, resource);` + more)})
		if err != nil {
			t.Fatal(err)
		}
		return admission.Rules{Policies: engine, Operator: policies.Operator{"files": {TrustAnnotations: true}},
			Elicitation: map[string]bool{"files": true}}
	}
	store, people := &kept{servers: []string{"crm"}}, &counting{}
	server := &changing{curious: curious{questions: []servers.Elicitation{city}}, change: func() {}}
	log, err := audit.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	opts := &options{broker.Options{Approver: people, Taint: store}, rules("")}
	b, decisions := opts.open(t, server, log)
	snapshot, err := catalog.NewSnapshot([]catalog.Server{{ID: "files", Tools: tools()}})
	if err != nil {
		t.Fatal(err)
	}
	run := open(t, b, broker.Run{ID: "run_1", Caller: caller.Caller{Principal: "ann", Kind: caller.Local,
		Session: "s", Lineage: "credential 1"}}, snapshot, nil)
	read := call("read_file", `{"path":"a"}`)
	checkAnswer(t, run.Call(t.Context(), read), "", "")
	if store.reads != 0 || len(people.asked) != 1 {
		t.Errorf("no rule reads the session: it was read %d times, and a person was asked %d times, want 0 and 1",
			store.reads, len(people.asked))
	}
	server.change = func() {
		if err := decisions.SetRules(t.Context(), rules(`forbid (principal, action, resource)
			when { context.session.servers.contains("crm") };`), "ann", "a rule about the session"); err != nil {
			t.Fatal(err)
		}
	}
	checkAnswer(t, run.Call(t.Context(), read), "", "")
	if store.reads != 0 || len(people.asked) != 1 {
		t.Errorf("the rule began during the call: got %d reads and %d questions, want 0 and 1", store.reads,
			len(people.asked))
	}
	checkAnswer(t, run.Call(t.Context(), read), "PolicyDenied", "forbids it")
}
