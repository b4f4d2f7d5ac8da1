package auth_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Issue 23: a token approved, in the console, what a run of the same token asked. It does not help to make another
// token with it, or to register an agent.
func TestWhoAsksDoesNotApprove(t *testing.T) {
	o := newOffice(t)
	_, host := o.caller(auth.Grant{Scopes: []string{"run", "approve", "agents", "admin"}})
	_, other := o.caller(auth.Grant{Scopes: []string{"approve"}})
	grant, err := auth.Grant{Name: "second", Scopes: []string{"approve", "admin"}}.Narrow(host)
	if err != nil {
		t.Fatal(err)
	}
	second := o.made(grant)
	if grant, err = (auth.Grant{Name: "third", Scopes: []string{"approve"}}).Narrow(second); err != nil {
		t.Fatal(err)
	}
	third := o.made(grant)
	_, _, agent := o.agent(host)
	person := caller.Caller{Principal: "root", Kind: caller.Local, Session: "console", Scopes: []string{"admin"}}
	for _, test := range []struct {
		name       string
		asks, says caller.Caller
		own        bool
	}{
		{"the token that asks", host, host, true},
		{"a token that was made with it", host, second, true},
		{"a token that was made with that", host, third, true},
		{"the token that registered the agent that asks", agent, host, true},
		{"a token that was made with that", agent, third, true},
		{"another token of the principal", host, other, false},
		{"another token, of an agent's action", agent, other, false},
		{"the token of the person who made the one that asks", second, host, false},
		{"a person with a link", host, person, false},
	} {
		var asked []string
		for _, one := range test.asks.Credentials {
			asked = append(asked, one.ID)
		}
		own, err := o.authority.IsOwn(t.Context(), test.says, asked)
		if err != nil || own != test.own {
			t.Errorf("%s: got %t, %v, want %t", test.name, own, err, test.own)
		}
	}
	first := host.Credentials[0].ID
	if err := o.tokens.Revoke(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if own, err := o.authority.IsOwn(t.Context(), third, []string{first}); err == nil && !own {
		t.Error("a token whose maker was revoked may approve")
	}
	if own, err := o.authority.IsOwn(t.Context(), other, []string{first, "tok_gone", "agent_gone"}); own || err != nil {
		t.Errorf("a question of credentials that are gone: got %t, %v", own, err)
	}
}
