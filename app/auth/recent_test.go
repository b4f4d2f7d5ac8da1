package auth

import (
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// issue 28: a node asks the database for a token once in a while, not for each call. A revocation counts when it has
// returned, whichever node made it.
func TestWhatIsKnownOfATokenIsFresh(t *testing.T) {
	db, err := database.OpenPostgreSQL(t.Context(), secret.New(databasetest.Schema(t)), "test", Schema, SchemaUses,
		SchemaCreators, SchemaFacts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := time.Now()
	clock := func() time.Time { return now }
	here := NewTokens(db, func() time.Time { return clock() })
	elsewhere := NewTokens(db, time.Now)
	a := NewAuthority(AuthorityOptions{Tokens: here})
	t.Cleanup(a.Close)
	made := func() (Token, secret.Value) {
		t.Helper()
		token, value, err := here.Create(t.Context(), Grant{Name: "laptop", Principal: "ann", Scopes: []string{"run"}})
		if err != nil {
			t.Fatal(err)
		}
		return token, value
	}
	token, value := made()
	other, otherValue := made()
	counts := func(value secret.Value, want bool) {
		t.Helper()
		who, err := here.Authenticate(t.Context(), value)
		if (err == nil) != want {
			t.Errorf("a request: %v", err)
		}
		if err != nil {
			return
		}
		if err := a.Check(t.Context(), who); err != nil {
			t.Errorf("a call: %v", err)
		}
	}
	counts(value, true)
	counts(otherValue, true)
	if err := elsewhere.Revoke(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	now = now.Add(freshTime - 1)
	counts(value, true)
	now = now.Add(1)
	counts(value, false)
	now = now.Add(-time.Hour) // the clock was set back
	counts(value, false)
	counts(otherValue, true)
	if err := here.Revoke(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	counts(otherValue, false)

	clock = time.Now
	third, thirdValue := made()
	counts(thirdValue, true)
	if err := elsewhere.Revoke(t.Context(), third.ID); err != nil {
		t.Fatal(err)
	}
	counts(thirdValue, false)
}
