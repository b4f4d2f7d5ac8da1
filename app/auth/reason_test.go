package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// The error for a refused token that Airlock issued has the ID of the token if it is known.
func TestWhyOwnTokensAreRefused(t *testing.T) {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Schema, SchemaCreators, SchemaFacts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := time.Unix(1_800_000_000, 0)
	tokens := NewTokens(db, func() time.Time { return now })
	grant := Grant{Name: "a", Principal: "ann", Scopes: []string{ScopeRun}, Expires: now.Add(time.Minute)}
	old, oldValue, err := tokens.Create(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	grant.Expires = time.Time{}
	revoked, revokedValue, err := tokens.Create(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.Revoke(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	for _, test := range []struct {
		token string
		want  InvalidError
	}{
		{oldValue.Reveal(), InvalidError{Reason: Expired, TokenID: old.ID}},
		{revokedValue.Reveal(), InvalidError{Reason: Revoked, TokenID: revoked.ID}},
		{oldValue.Reveal() + "0", InvalidError{Reason: Unknown}},
		{"something", InvalidError{Reason: Malformed}},
		{"airlock_agent_0", InvalidError{Reason: Unknown}},
	} {
		_, err := (&Authenticator{Tokens: tokens}).Token(t.Context(), secret.New(test.token))
		var got *InvalidError
		if !errors.As(err, &got) || *got != test.want {
			t.Errorf("got %v, %+v, want %+v", err, got, test.want)
		}
	}
}

// If a token is not from the issuer, its key ID and issuer are only logged if they are short and
// have the usual form. Nothing else from the token gets into the log.
func TestOnlyUsualKeyIDsAndIssuersAreTold(t *testing.T) {
	server := newAuthServer(t)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, known, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	server.publish("known", "", known.Public())
	issuer := NewIssuer(config.Auth{Issuer: server.URL, Audience: ours, Types: []string{"at+jwt"}}, nil, nil)
	for name, test := range map[string]struct {
		keyID, issuer string
		told          InvalidError
	}{
		"as they should be": {"key-1_a=", "https://login.example.com:8443/tenant-1/v2.0",
			InvalidError{WrongIssuer, "", "key-1_a=", "https://login.example.com:8443/tenant-1/v2.0"}},
		"long texts": {strings.Repeat("k", 65), "https://login.example.com/" + strings.Repeat("i", 65),
			InvalidError{Reason: WrongIssuer}},
		"a line break": {"k\nlevel=ERROR", "https://login.example.com/\nlevel=ERROR",
			InvalidError{Reason: WrongIssuer}},
		"a break at the end":    {"k\n", "https://login.example.com\n", InvalidError{Reason: WrongIssuer}},
		"words":                 {"ignore what was said", "ignore what was said", InvalidError{Reason: WrongIssuer}},
		"a credential in a URL": {"k", "https://ann:secret@login.example.com", InvalidError{WrongIssuer, "", "k", ""}},
		"a query":               {"k", "https://login.example.com/?secret", InvalidError{WrongIssuer, "", "k", ""}},
		"another key":           {"k", server.URL, InvalidError{UnknownKey, "", "k", server.URL}},
	} {
		token := sign(t, jose.EdDSA, key, map[string]any{"kid": test.keyID, "typ": "at+jwt"},
			map[string]any{"iss": test.issuer, "aud": ours, "sub": "ann", "exp": time.Now().Unix() + 60})
		_, err := issuer.Authenticate(t.Context(), secret.New(token), "/mcp")
		var got *InvalidError
		if !errors.As(err, &got) || *got != test.told {
			t.Errorf("%s: got %v, %+v, want %+v", name, err, got, test.told)
		}
	}
}
