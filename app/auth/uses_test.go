package auth_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// The day on which a token was last used is kept: of requests that were accepted only (issue 27.12).
func TestTheLastUseOfTokensIsKept(t *testing.T) {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), agents.Schema, auth.Schema,
		agents.SchemaInherited, agents.SchemaApprovers,
		agents.SchemaLists, agents.SchemaDebits, agents.SchemaSelections, auth.SchemaUses,
		auth.SchemaCreators, auth.SchemaFacts, auth.SchemaSignOuts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC)
	tokens := auth.NewTokens(db, func() time.Time { return now })
	authority := auth.NewAuthority(auth.AuthorityOptions{Tokens: tokens,
		Agents: agents.New(agents.Options{Database: db, Log: noLog{}})})
	t.Cleanup(authority.Close)
	authenticator := &auth.Authenticator{Tokens: tokens, Authority: authority}
	grant := auth.Grant{Name: "used", Scopes: []string{auth.ScopeRun}}
	used, value, err := tokens.Create(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	grant.Name = "unused"
	unused, second, err := tokens.Create(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	identify := func(value string) error {
		_, err := authenticator.Identify(request(map[string][]string{"Authorization": {"Bearer " + value}}))
		return err
	}
	check := func(want string) {
		t.Helper()
		list, err := tokens.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		days, err := tokens.Used(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			got := ""
			if one.Used != nil {
				got = one.Used.Format(time.DateOnly)
			}
			if one.ID == used.ID && got != want || one.ID == unused.ID && got != "" {
				t.Errorf("%s was used %q, want %q", one.Name, got, want)
			}
		}
		if day, ok := days[used.ID]; ok != (want != "") || ok && day.Format(time.DateOnly) != want {
			t.Errorf("Used has %v, want %q", days, want)
		}
	}
	check("")
	for range 3 {
		if err := identify(value.Reveal()); err != nil {
			t.Fatal(err)
		}
	}
	check("2026-03-01")
	now = now.Add(time.Hour)
	check("2026-03-01")
	if err := identify(value.Reveal()); err != nil {
		t.Fatal(err)
	}
	check("2026-03-02")
	now = now.Add(48 * time.Hour)
	for _, id := range []string{used.ID, unused.ID} {
		if err := tokens.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if identify(value.Reveal()) == nil || identify(second.Reveal()) == nil {
		t.Error("a revoked token was accepted")
	}
	check("2026-03-02")
}

// Requests are answered although their use cannot be noted.
func TestAUseThatCannotBeKeptEndsNothing(t *testing.T) {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), agents.Schema, auth.Schema,
		agents.SchemaInherited, agents.SchemaApprovers,
		agents.SchemaLists, agents.SchemaDebits, agents.SchemaSelections, auth.SchemaUses,
		auth.SchemaCreators, auth.SchemaFacts, auth.SchemaSignOuts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tokens := auth.NewTokens(db, nil)
	authority := auth.NewAuthority(auth.AuthorityOptions{Tokens: tokens,
		Agents: agents.New(agents.Options{Database: db, Log: noLog{}})})
	t.Cleanup(authority.Close)
	_, value, err := tokens.Create(t.Context(), auth.Grant{Name: "a", Scopes: []string{auth.ScopeRun}})
	if err == nil {
		err = db.Update(t.Context(), func(tx database.Tx) error {
			_, err := tx.ExecContext(t.Context(), `DROP TABLE credential_use`)
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	authenticator := &auth.Authenticator{Tokens: tokens, Authority: authority}
	if _, err := authenticator.Identify(request(map[string][]string{
		"Authorization": {"Bearer " + value.Reveal()}})); err != nil {
		t.Errorf("got %v, want the caller", err)
	}
}

type noLog struct{}

func (noLog) Append(context.Context, audit.Record) error { return nil }
