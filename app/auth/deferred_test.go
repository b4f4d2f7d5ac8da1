package auth_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// Issue 23: a run that a former process suspended is continued before the tokens are open. It was not watched, so the
// revocation of its token did not end it.
func TestActsThatBeganBeforeTheTokensWereOpen(t *testing.T) {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), agents.Schema, auth.Schema,
		auth.SchemaUses, auth.SchemaCreators, auth.SchemaFacts, auth.SchemaSignOuts)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tokens := auth.NewTokens(db, nil)
	callerOf := func(name string) (auth.Token, caller.Caller) {
		made, value, err := tokens.Create(t.Context(), auth.Grant{Name: name, Principal: name, Scopes: []string{"run"}})
		if err != nil {
			t.Fatal(err)
		}
		who, err := (&auth.Authenticator{Tokens: tokens}).Token(t.Context(), value)
		if err != nil {
			t.Fatal(err)
		}
		return made, who
	}
	revoked, bob := callerOf("bob")
	_, ann := callerOf("ann")
	var a auth.Deferred
	known := auth.NewAuthority(auth.AuthorityOptions{Tokens: tokens,
		Profiles: func(name string) bool { return name == "reading" }})
	defer known.Close()
	of := func(who caller.Caller) (ended, stays func() error) {
		ctx, stop := a.While(t.Context(), who)
		t.Cleanup(stop)
		return func() error { <-ctx.Done(); return ctx.Err() }, ctx.Err
	}
	endOfBob, _ := of(bob)
	_, ofAnn := of(ann)
	endOfProfile, _ := of(caller.Caller{Principal: "cay", Kind: caller.Local, Session: "ses_1", Profile: "removed"})
	if err := tokens.Revoke(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	a.Open(known)
	for name, ended := range map[string]func() error{"the token was revoked": endOfBob,
		"the profile was removed": endOfProfile} {
		if err := ended(); err == nil {
			t.Errorf("%s: the act goes on", name)
		}
	}
	if err := ofAnn(); err != nil {
		t.Errorf("an act whose token is in force ended: %v", err)
	}
	if err := a.Check(t.Context(), bob); !errors.Is(err, caller.ErrEnded) {
		t.Errorf("got %v, want %v", err, caller.ErrEnded)
	}
}
