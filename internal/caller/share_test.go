package caller_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// A caller without an account has one share for all its sessions. A caller of another kind or
// issuer with the same name has a different share.
func TestShare(t *testing.T) {
	ann := caller.Caller{Principal: "ann", Kind: caller.User, Session: "ses_1"}
	for _, test := range []struct {
		name  string
		other caller.Caller
		same  bool
	}{
		{"another session", caller.Caller{Principal: "ann", Kind: caller.User, Session: "ses_2"}, true},
		{"another kind", caller.Caller{Principal: "ann", Kind: caller.Agent, Session: "ses_1"}, false},
		{"another issuer", caller.Caller{Principal: "ann", Kind: caller.User, Issuer: "https://id.example", Session: "ses_1"}, false},
		{"an account", caller.Caller{Principal: "ann", Kind: caller.User, Session: "ses_1", Account: "agents of ann"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ann.Share() == test.other.Share(); got != test.same {
				t.Errorf("got shares %q and %q, want the same: %t", ann.Share(), test.other.Share(), test.same)
			}
		})
	}
	if got := (caller.Caller{Principal: "a", Kind: caller.Agent, Account: "agents of ann"}).Share(); got != "agents of ann" {
		t.Errorf("got %q, want the account", got)
	}
}
