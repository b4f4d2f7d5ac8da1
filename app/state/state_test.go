package state

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

type discard struct{}

func (discard) Append(context.Context, audit.Record) error { return nil }

// The state of each earlier version is migrated on both engines, and the newest has the tables of all stores.
func TestStatesOfEarlierVersionsAreMigrated(t *testing.T) {
	for engine, fresh := range map[string]func(*testing.T) func(versions ...string) (*database.DB, error){
		"SQLite": func(t *testing.T) func(versions ...string) (*database.DB, error) {
			path := filepath.Join(t.TempDir(), "state.db")
			return func(versions ...string) (*database.DB, error) {
				return database.Open(t.Context(), path, versions...)
			}
		},
		"PostgreSQL": func(t *testing.T) func(versions ...string) (*database.DB, error) {
			address := secret.New(databasetest.Schema(t))
			return func(versions ...string) (*database.DB, error) {
				return database.OpenPostgreSQL(t.Context(), address, "state", versions...)
			}
		},
	} {
		for n := range Versions() {
			t.Run(fmt.Sprint(engine, " from version ", n), func(t *testing.T) {
				open := fresh(t)
				before, err := open(Versions()[:n]...)
				if err != nil {
					t.Fatal(err)
				}
				if err := before.Close(); err != nil {
					t.Fatal(err)
				}
				db, err := open(Versions()...)
				if err != nil {
					t.Fatal(err)
				}
				useState(t, db)
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// useState registers an agent with a token and ends it with the token.
func useState(t *testing.T, db *database.DB) {
	t.Helper()
	tokens := auth.NewTokens(db, nil)
	token, _, err := tokens.Create(t.Context(), auth.Grant{Name: "a", Scopes: []string{auth.ScopeAdmin},
		Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if ends, err := tokens.Ends(t.Context()); err != nil || ends[token.ID] == 0 {
		t.Errorf("the ends are %v: %v", ends, err)
	}
	registry := agents.New(agents.Options{Database: db, Log: discard{}})
	inherited := agents.Inherited{Profile: "p", Credentials: []caller.Credential{{ID: token.ID}}}
	a, _, err := registry.Register(t.Context(), agents.Registration{Name: "a", Type: agents.Supervised,
		PrincipalID: "u",
		Inherited:   inherited}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Rotate(t.Context(), a.ID, "ann", []caller.Credential{{ID: "tok_2"}}); err != nil {
		t.Fatal(err)
	}
	listed, err := registry.List(t.Context(), agents.Selection{Owner: "ann", Profile: "p"}, "", 10)
	if err != nil || len(listed) != 1 || len(listed[0].Credentials) != 2 {
		t.Errorf("listed %+v, %v", listed, err)
	}
	err = registry.EndOf(t.Context(), "tok_2", "ann")
	if ended, found := registry.Find(t.Context(), a.ID); ended.Status != agents.Killed {
		t.Errorf("the agent of a revoked token is %q: %v", ended.Status, errors.Join(err, found))
	}
}
