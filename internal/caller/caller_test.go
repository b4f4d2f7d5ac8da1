package caller

import "testing"

var ann = Caller{Principal: "ann", Kind: User, Issuer: "https://a.example", Session: "ses_1"}

func TestACallerReachesItsOwnThingsOnly(t *testing.T) {
	for name, change := range map[string]func(*Caller){
		"another principal": func(c *Caller) { c.Principal = "bob" },
		"another issuer":    func(c *Caller) { c.Issuer = "https://b.example" },
		"another kind":      func(c *Caller) { c.Kind = Agent },
		"another session":   func(c *Caller) { c.Session = "ses_2" },
		"no session":        func(c *Caller) { c.Session = "" },
		"another scope":     func(c *Caller) { c.Session, c.Scopes = "ses_2", []string{"runs:al", "runs:all:x", ""} },
	} {
		other := ann
		change(&other)
		if other.MayReach(ann.Owner()) {
			t.Errorf("%s: got that it reaches ann's things, want not", name)
		}
	}
	profiled := ann
	profiled.Profile, profiled.Scopes = "small", []string{"tools:read"}
	if !profiled.MayReach(ann.Owner()) {
		t.Error("a profile or a scope changed whose things are whose")
	}
}

func TestAScopeReachesAllThings(t *testing.T) {
	operator := Caller{Principal: "olga", Kind: User, Issuer: "https://a.example", Session: "ses_9", Scopes: []string{ScopeAllRuns}}
	if !operator.MayReach(ann.Owner()) {
		t.Error("got that an operator does not reach ann's things")
	}
	if (Caller{Scopes: []string{ScopeAllRuns}}).MayReach(ann.Owner()) {
		t.Error("got that an anonymous caller with a scope reaches ann's things")
	}
}

func TestCallersWithoutIdentityOwnNothing(t *testing.T) {
	for _, c := range []Caller{{}, {Principal: "ann"}, {Principal: "ann", Kind: Local}, {Kind: Local, Session: "s"}} {
		if c.Known() || c.MayReach(c.Owner()) {
			t.Errorf("got that %+v is known, want anonymous", c)
		}
	}
}

func TestNamesOfTwoIssuersDiffer(t *testing.T) {
	local, other := Caller{Principal: "ann"}, ann
	other.Issuer = "https://b.example"
	if local.Name() != "ann" || ann.Name() == other.Name() || ann.Name() == local.Name() {
		t.Errorf("got %q, %q and %q, want three names", local.Name(), ann.Name(), other.Name())
	}
}
