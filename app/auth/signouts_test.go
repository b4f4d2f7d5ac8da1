package auth

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Issue 23: a token that a person had made in the console stayed in force after the person had signed out, and nothing
// could end the access tokens of a person whose account was disabled.
func TestSignedOutPeople(t *testing.T) {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Schema, SchemaUses, SchemaCreators,
		SchemaFacts, SchemaSignOuts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := newSignInServer(t)
	s.now = time.Now()
	issuer := s.issuer()
	tokens := NewTokens(db, func() time.Time { return s.now })
	known := NewAuthority(AuthorityOptions{Tokens: tokens})
	t.Cleanup(known.Close)
	known.Accept(issuer)
	identify := &Authenticator{Tokens: tokens, Authority: known, Issuer: func() *Issuer { return issuer }}
	person := func(subject string) Person {
		t.Helper()
		p, err := issuer.Person(t.Context(), s.token(t, nil, map[string]any{"sub": subject, "groups": []string{"ops"}}),
			"n-1", nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	// of returns the caller of a token that a person makes in the console.
	of := func(p Person) caller.Caller {
		t.Helper()
		who, err := identify.Person(t.Context(), p)
		var grant Grant
		if err == nil {
			grant, err = Grant{Name: "made", Scopes: []string{ScopeRun}}.Narrow(who)
		}
		var value secret.Value
		if err == nil {
			_, value, err = tokens.Create(t.Context(), grant)
		}
		if err == nil {
			who, err = identify.Token(t.Context(), value)
		}
		if err != nil {
			t.Fatal(err)
		}
		return who
	}
	access := func(subject string) (caller.Caller, error) {
		return identify.Token(t.Context(), s.token(t, map[string]any{"typ": "at+jwt"}, map[string]any{"sub": subject,
			"aud": ours, "scope": "run", "iat": s.now.Unix(), "exp": s.now.Add(time.Hour).Unix()}))
	}
	first, second, bobs := person("ann"), person("ann"), person("bob")
	firsts, seconds, bobbed := of(first), of(second), of(bobs)
	host, err := access("ann")
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, ended map[string]caller.Caller, inForce map[string]caller.Caller) {
		t.Helper()
		for name, who := range ended {
			if err := known.Check(t.Context(), who); !errors.Is(err, caller.ErrEnded) {
				t.Errorf("%s: %s: got %v, want %v", when, name, err, caller.ErrEnded)
			}
		}
		for name, who := range inForce {
			if err := known.Check(t.Context(), who); err != nil {
				t.Errorf("%s: %s: got %v", when, name, err)
			}
		}
	}
	check("before", nil, map[string]caller.Caller{"first": firsts, "second": seconds, "bob": bobbed, "host": host})
	if err := tokens.SignOut(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	check("one sign-in is signed out", map[string]caller.Caller{"first": firsts},
		map[string]caller.Caller{"second": seconds, "bob": bobbed, "host": host})
	if _, err := identify.Person(t.Context(), first); err == nil {
		t.Error("the sign-in can still be used")
	}
	if err := tokens.SignOutSubject(t.Context(), s.URL+"#ann"); err != nil {
		t.Fatal(err)
	}
	check("the person is signed out", map[string]caller.Caller{"second": seconds, "host": host},
		map[string]caller.Caller{"bob": bobbed})
	if _, err := access("ann"); err == nil {
		t.Error("a token that was issued in the same second is accepted")
	}
	s.now = s.now.Add(2 * clockSkew)
	if _, err := access("ann"); err != nil {
		t.Errorf("a token that was issued later: %v", err)
	}
}
