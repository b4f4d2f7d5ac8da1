package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// clock is set by the tests.
type clock struct{ now time.Time }

func newTokens(t *testing.T) (*auth.Tokens, *clock) {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), auth.Schema, auth.SchemaUses,
		auth.SchemaCreators, auth.SchemaFacts, auth.SchemaSignOuts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	return auth.NewTokens(db, func() time.Time { return c.now }), c
}

func request(headers map[string][]string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header = headers
	return r
}

func TestATokenLivesUntilItExpiresOrIsRevoked(t *testing.T) {
	tokens, clock := newTokens(t)
	made, value, err := tokens.Create(t.Context(), auth.Grant{
		Name: "laptop", Principal: "ann", Profile: "small", Scopes: []string{"run", "audit", "run"},
		Expires: clock.now.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	identify := func() (caller.Caller, error) {
		return (&auth.Authenticator{Tokens: tokens}).Identify(
			request(map[string][]string{"Authorization": {"bearer " + value.Reveal()}}))
	}
	who, err := identify()
	if err != nil || who.Principal != "ann" || who.Kind != caller.User || who.Profile != "small" ||
		who.Session != made.ID ||
		!auth.Has(who, auth.ScopeAudit) || auth.Has(who, auth.ScopeApprove) {
		t.Errorf("%+v, %v", who, err)
	}
	clock.now = clock.now.Add(time.Hour)
	if _, err := identify(); !errors.Is(err, auth.ErrInvalid) {
		t.Errorf("expired: %v", err)
	}
	clock.now = clock.now.Add(-time.Hour)
	if err := errors.Join(tokens.Revoke(t.Context(), made.ID), tokens.Revoke(t.Context(), made.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := identify(); !errors.Is(err, auth.ErrInvalid) {
		t.Errorf("revoked: %v", err)
	}
	if err := tokens.Revoke(t.Context(), "tok_none"); !errors.Is(err, auth.ErrUnknown) {
		t.Errorf("an unknown token: %v", err)
	}
	list, err := tokens.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Revoked == nil || len(list[0].Scopes) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestWhatIsNoCredential(t *testing.T) {
	tokens, _ := newTokens(t)
	_, value, err := tokens.Create(t.Context(), auth.Grant{Name: "a", Principal: "ann", Scopes: []string{"run"}})
	if err != nil {
		t.Fatal(err)
	}
	good := value.Reveal()
	for name, headers := range map[string]map[string][]string{
		"none":            {},
		"another scheme":  {"Authorization": {"Basic " + good}},
		"no scheme":       {"Authorization": {good}},
		"two headers":     {"Authorization": {"Bearer " + good, "Bearer " + good}},
		"two tokens":      {"Authorization": {"Bearer " + good + "," + good}},
		"a space inside":  {"Authorization": {"Bearer " + good[:20] + " " + good[20:]}},
		"a part":          {"Authorization": {"Bearer " + good[:40]}},
		"other case":      {"Authorization": {"Bearer " + strings.ToUpper(good)}},
		"an agent's form": {"Authorization": {"Bearer qwed_agent_" + strings.Repeat("0", 64)}},
		"agent's header":  {"X-Agent-Token": {good}},
		"empty":           {"Authorization": {"Bearer "}},
	} {
		who, err := (&auth.Authenticator{Tokens: tokens}).Identify(request(headers))
		if !errors.Is(err, auth.ErrInvalid) && !errors.Is(err, auth.ErrNone) || who.Known() {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
}

func TestWhatGrantsMayHold(t *testing.T) {
	tokens, _ := newTokens(t)
	for problem, g := range map[string]auth.Grant{
		"name":                 {Principal: "ann", Scopes: []string{"run"}},
		"principal":            {Name: "a", Principal: "a\nb", Scopes: []string{"run"}},
		"needs a scope":        {Name: "a", Principal: "ann"},
		`did you mean "run"`:   {Name: "a", Principal: "ann", Scopes: []string{"runs"}},
		"no control character": {Name: "a\n", Principal: "ann", Scopes: []string{"run"}},
	} {
		if _, value, err := tokens.Create(t.Context(), g); err == nil || !strings.Contains(err.Error(), problem) ||
			value.Reveal() != (secret.Value{}).Reveal() {
			t.Errorf("%+v: %v, want %q", g, err, problem)
		}
	}
}

// Two tokens identify two principals unless a principal is given (issue 23).
func TestATokenHasAPrincipalOfItsOwn(t *testing.T) {
	tokens, _ := newTokens(t)
	var seen []string
	for _, principal := range []string{"", "", "ann", "ann"} {
		made, value, err := tokens.Create(t.Context(),
			auth.Grant{Name: "laptop", Principal: principal, Scopes: []string{"run"}})
		if err != nil {
			t.Fatal(err)
		}
		who, err := tokens.Authenticate(t.Context(), value)
		if err != nil || who.Principal != made.Principal {
			t.Fatalf("%+v of %+v, %v", who, made, err)
		}
		seen = append(seen, who.Principal)
	}
	if seen[0] == seen[1] || seen[0] == "" || seen[2] != "ann" || seen[3] != "ann" {
		t.Errorf("got the principals %q", seen)
	}
}
