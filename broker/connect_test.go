package broker_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/policies"
)

const connections = `
@id("github") permit (principal, action == Action::"connect", resource)
when { resource.name == "api.github.com" && resource.port == 443 };
@id("ask") @approve("owner") permit (principal, action == Action::"connect", resource)
when { resource.name == "ask.example" };
@id("taint") @reason("read before") forbid (principal, action == Action::"connect", resource)
when { context.session.servers.contains("files") };
@id("read") permit (principal, action in Action::"call", resource);
`

// Issue 30, C-079: each connection is decided, recorded before it is made, and recorded again with what it carried.
func TestConnectionsAreDecidedAndRecorded(t *testing.T) {
	engine, err := policies.Load(policies.File{Name: "p.cedar", Source: []byte(connections)})
	if err != nil {
		t.Fatal(err)
	}
	var asked []approval.Question
	answer := approval.Verdict{Answer: approval.Yes, By: "ann"}
	f := newFixture(t, func(o *options) {
		o.Rules.Policies = engine
		o.Approver = approver{answer, func(q approval.Question) { asked = append(asked, q) }}
	})
	calls := f.open()
	connect := func(name string, port uint16) (func(egress.Outcome), string) {
		done, err := calls.Connect(t.Context(), egress.Host{Name: name, Port: port})
		var refused *egress.Refusal
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("got %v, want a refusal", err)
		}
		if err != nil {
			return nil, err.Error()
		}
		return done, ""
	}
	done, refused := connect("api.github.com", 443)
	if refused != "" {
		t.Fatal(refused)
	}
	last := func() audit.Record { records := f.records(t); return records[len(records)-1] }
	if r := last(); r.Kind != audit.KindIntent || r.ServerID != "api.github.com:443" || r.ToolName != "connect" ||
		r.Decision != "allow" || r.Policies[0] != "github" || r.RunID != "run_1" || r.Principal != "ann" {
		t.Errorf("got the record %+v, want an intent", r)
	}
	done(egress.Outcome{Address: netip.MustParseAddrPort("140.82.112.5:443"), Sent: 7, Received: 9})
	if r := last(); r.Kind != audit.KindOutcome || r.Outcome != audit.OutcomeOK || r.BytesSent != 7 ||
		r.BytesReceived != 9 || r.Address != "140.82.112.5:443" {
		t.Errorf("got the record %+v, want an outcome", r)
	}
	for host, want := range map[string]string{"evil.com": "no policy permits it",
		"api.github.com": "no policy permits it"} {
		if _, refused := connect(host, 80); !strings.Contains(refused, want) {
			t.Errorf("%s: got %q, want %q", host, refused, want)
		}
		if r := last(); r.Outcome != audit.OutcomeRefused || r.Decision != "deny" {
			t.Errorf("%s: got the record %+v, want a refusal", host, r)
		}
	}
	if done, refused = connect("ask.example", 443); refused != "" || len(asked) != 1 ||
		asked[0].ServerID != "ask.example:443" || asked[0].ToolName != "connect" {
		t.Errorf("got %q and the questions %+v", refused, asked)
	} else {
		done(egress.Outcome{Err: errors.New("reset")})
		if r := last(); r.Outcome != audit.OutcomeError || r.Approver != "ann" || r.Detail != "reset" {
			t.Errorf("got the record %+v, want a failed connection that ann approved", r)
		}
	}
	calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "count", Arguments: []byte(`{}`)})
	if _, refused = connect("api.github.com", 443); !strings.Contains(refused, "read before") {
		t.Errorf("after a read: got %q", refused)
	}
	calls.Close()
	if _, refused = connect("api.github.com", 443); refused != "the run is over" {
		t.Errorf("after the run: got %q", refused)
	}
}

// Issue 30: a person who refuses a connection ends the attempt, and the facts of the session contain the host.
func TestARefusedConnection(t *testing.T) {
	engine, err := policies.Load(policies.File{Name: "p.cedar", Source: []byte(connections +
		`@id("after") forbid (principal, action in Action::"call", resource)
		when { context.session.servers.contains("api.github.com:443") };`)})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *options) {
		o.Rules.Policies = engine
		o.Approver = approver{verdict: approval.Verdict{Answer: approval.No}}
	})
	calls := f.open()
	defer calls.Close()
	if _, err := calls.Connect(t.Context(), egress.Host{Name: "ask.example", Port: 443}); err == nil ||
		!strings.Contains(err.Error(), "a person refused") {
		t.Errorf("got %v", err)
	}
	done, err := calls.Connect(t.Context(), egress.Host{Name: "api.github.com", Port: 443})
	if err != nil {
		t.Fatal(err)
	}
	done(egress.Outcome{})
	got := calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "count", Arguments: []byte(`{}`)})
	if got.Error == nil || got.Error.Type != "PolicyDenied" {
		t.Errorf("after the connection: got %+v, want a refusal", got)
	}
}
