package auth_test

import (
	"errors"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Issue 23: an administrator with a profile made a token without it in the console, for any principal, and the token
// outlived the one that it was made with.
func TestATokenIsNarrowerThanTheOneThatMakesIt(t *testing.T) {
	o := newOffice(t, "small", "large")
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	first, admin := o.caller(auth.Grant{Profile: "small", Scopes: []string{"admin"}, Expires: end})
	grant, err := auth.Grant{Name: "second", Scopes: []string{"admin"}}.Narrow(admin)
	if err != nil || grant.Profile != "small" || !grant.Expires.Equal(end) {
		t.Fatalf("got %+v, %v, want the profile and the end of the token", grant, err)
	}
	second := o.made(grant)
	grant, err = auth.Grant{Name: "third", Scopes: []string{"run"}}.Narrow(second)
	if err != nil {
		t.Fatal(err)
	}
	third := o.made(grant)
	for name, wider := range map[string]auth.Grant{
		"another profile":   {Name: "x", Profile: "large", Scopes: []string{"run"}},
		"another principal": {Name: "x", Principal: "ann", Scopes: []string{"run"}},
	} {
		var refused *auth.GrantError
		if _, err := wider.Narrow(admin); !errors.As(err, &refused) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var refused *auth.GrantError
	if _, err := (auth.Grant{Name: "x", Scopes: []string{"approve"}}).Narrow(third); !errors.As(err, &refused) {
		t.Errorf("another scope: got %v", err)
	}
	person := caller.Caller{Principal: "root", Kind: caller.Local, Session: "ses_1", Scopes: []string{"admin"}}
	if _, err := (auth.Grant{Name: "x", Principal: "ann", Scopes: []string{"run"}}).Narrow(person); err != nil {
		t.Errorf("a person with a link: %v", err)
	}
	ctx, stop := o.authority.While(t.Context(), third)
	defer stop()
	for _, who := range []caller.Caller{second, third} {
		if err := o.authority.Check(t.Context(), who); err != nil {
			t.Errorf("before the first token was revoked: %v", err)
		}
	}
	if err := o.tokens.Revoke(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	for _, who := range []caller.Caller{second, third} {
		if err := o.authority.Check(t.Context(), who); !errors.Is(err, caller.ErrEnded) {
			t.Errorf("after the first token was revoked: got %v", err)
		}
	}
	<-ctx.Done() // an act of the third token ended, too
}

// made issues a token and returns the caller that it identifies.
func (o *office) made(g auth.Grant) caller.Caller {
	o.Helper()
	_, value, err := o.tokens.Create(o.Context(), g)
	if err != nil {
		o.Fatal(err)
	}
	who, err := o.identify.Token(o.Context(), value)
	if err != nil {
		o.Fatal(err)
	}
	return who
}
