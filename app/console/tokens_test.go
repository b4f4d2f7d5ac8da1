package console_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/console"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// tokenBook makes and revokes tokens without an audit log.
type tokenBook struct{ tokens *auth.Tokens }

func (b *tokenBook) Tokens() *auth.Tokens { return b.tokens }

func (b *tokenBook) CreateToken(ctx context.Context, grant auth.Grant, _ string) (auth.Token, secret.Value, error) {
	return b.tokens.Create(ctx, grant)
}

func (b *tokenBook) RevokeToken(ctx context.Context, id, _ string) error {
	return b.tokens.Revoke(ctx, id)
}

// Issue 23: an administrator with a profile made tokens without it, for other principals, and saw and revoked the
// tokens of other profiles.
func TestTokensMadeInTheConsoleAreNarrower(t *testing.T) {
	book := &tokenBook{}
	s := serve(t, func(o *console.Options) { o.Tokens = book })
	book.tokens = s.tokens
	large, _, err := s.tokens.Create(t.Context(), auth.Grant{Name: "of-large", Profile: "large",
		Scopes: []string{"run"}})
	if err != nil {
		t.Fatal(err)
	}
	first, value, err := s.tokens.Create(t.Context(), auth.Grant{Name: "first", Profile: "small",
		Scopes: []string{"admin"}})
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	b.send(http.MethodPost, "/sign-in", url.Values{"token": {value.Reveal()}}, nil)
	if page := b.get("/tokens"); page.status != http.StatusOK || strings.Contains(page.body, "of-large") ||
		!strings.Contains(page.body, "first") {
		t.Errorf("got %d %s, want only tokens of the profile", page.status, page.body)
	}
	if got := b.post("/tokens/"+large.ID+"/revoke", nil); got.status != http.StatusNotFound {
		t.Errorf("revoking a token of another profile: got %d %s", got.status, got.body)
	}
	if got := b.post("/tokens", url.Values{"name": {"for-ann"}, "principal": {"ann"}, "scope": {"run"},
		"life": {"1 year"}}); got.status != http.StatusForbidden {
		t.Errorf("a token for another principal: got %d %s", got.status, got.body)
	}
	if got := b.post("/tokens", url.Values{"name": {"second"}, "scope": {"admin"}, "life": {"1 year"}}); got.status !=
		http.StatusOK {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	list, err := s.tokens.List(t.Context())
	at := slices.IndexFunc(list, func(made auth.Token) bool { return made.Name == "second" })
	if err != nil || at < 0 || list[at].Profile != "small" {
		t.Errorf("got %+v, %v, want the profile of who made it", list, err)
	}
	if got := b.post("/tokens/"+first.ID+"/revoke", nil); got.status != http.StatusSeeOther {
		t.Errorf("revoking its own token: got %d %s", got.status, got.body)
	}
}
