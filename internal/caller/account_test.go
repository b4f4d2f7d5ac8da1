package caller_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// A caller has one account for all its sessions. A caller of another kind or issuer with the same
// name has another account, and so have the agents that it registered.
func TestAccount(t *testing.T) {
	ann := caller.Caller{Principal: "ann", Kind: caller.User, Session: "ses_1"}
	for _, test := range []struct {
		name  string
		other caller.Caller
		same  bool
	}{
		{"another session", caller.Caller{Principal: "ann", Kind: caller.User, Session: "ses_2"}, true},
		{"another kind", caller.Caller{Principal: "ann", Kind: caller.Agent, Session: "ses_1"}, false},
		{"another issuer", caller.Caller{Principal: "ann", Kind: caller.User, Issuer: "https://id.example",
			Session: "ses_1"}, false},
		{"its agent", caller.Caller{Principal: "agent_1", Kind: caller.Agent, Session: "agent_1", Registrar: "ann"},
			false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ann.Account() == test.other.Account(); got != test.same {
				t.Errorf("got accounts %q and %q, want the same: %t", ann.Account(), test.other.Account(), test.same)
			}
		})
	}
	one, other := caller.Caller{Principal: "agent_1", Kind: caller.Agent, Registrar: "ann"},
		caller.Caller{Principal: "agent_2", Kind: caller.Agent, Registrar: "ann"}
	if one.Account() != other.Account() {
		t.Errorf("two agents of one caller: got %q and %q, want one account", one.Account(), other.Account())
	}
}
