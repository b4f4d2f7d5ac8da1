package broker

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// Issue 31: records have the chain from the person to the program, and an agent is not taken for a person.
func TestDelegation(t *testing.T) {
	ann := caller.Caller{Principal: "ann", Kind: caller.User, Issuer: "https://id.example"}
	agent := caller.Caller{Principal: "agt_1", Kind: caller.Agent, Registrar: "https://id.example#ann"}
	from := func(c caller.Caller, host string) caller.Caller { c.Host = host; return c }
	for name, test := range map[string]struct {
		run  Run
		want string
	}{
		"a program of a person's host": {Run{Caller: from(ann, "claude-code 2"), CodeHash: "sha256:1"},
			`{"sub":"ann","iss":"https://id.example","act":{"sub":"sha256:1","kind":"program",` +
				`"act":{"sub":"claude-code 2","kind":"host","claimed":true}}}`},
		"a program of an agent": {Run{Caller: from(agent, "sdk"), CodeHash: "sha256:1"},
			`{"sub":"https://id.example#ann","act":{"sub":"sha256:1","kind":"program","act":{"sub":"agt_1",` +
				`"kind":"agent","act":{"sub":"sdk","kind":"host","claimed":true}}}}`},
		"a call of a host": {Run{Caller: from(ann, "sdk"), CodeHash: "sha256:1", ByHost: true},
			`{"sub":"ann","iss":"https://id.example","act":{"sub":"sdk","kind":"host","claimed":true}}`},
		"a program at the command line": {Run{Caller: caller.Caller{Principal: "ann", Kind: caller.Local},
			CodeHash: "sha256:1"}, `{"sub":"ann","act":{"sub":"sha256:1","kind":"program"}}`},
		"a connection of a contained server": {Run{Caller: caller.Caller{Principal: "crm", Kind: caller.Contained}},
			`{"act":{"sub":"crm","kind":"server"}}`},
	} {
		want, err := canon.JSON([]byte(test.want))
		if got := newIdentity(test.run).delegated; err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s, want %s, %v", name, got, want, err)
		}
	}
}
