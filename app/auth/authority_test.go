package auth_test

import (
	"context"
	"errors"
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

// office has tokens and agents with one authority for both.
type office struct {
	*testing.T
	db        *database.DB
	tokens    *auth.Tokens
	agents    *agents.Service
	authority *auth.Authority
	identify  *auth.Authenticator
}

func newOffice(t *testing.T, profiles ...string) *office {
	dir := t.TempDir()
	db, err := databasetest.Open(t.Context(), filepath.Join(dir, "state.db"), agents.Schema, auth.Schema,
		agents.SchemaInherited, agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits,
		agents.SchemaSelections, auth.SchemaUses, auth.SchemaCreators, auth.SchemaFacts, auth.SchemaSignOuts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	o := &office{T: t, db: db, tokens: auth.NewTokens(db, nil)}
	o.agents = agents.New(agents.Options{Database: db, Log: log})
	known := map[string]bool{}
	for _, name := range profiles {
		known[name] = true
	}
	o.authority = auth.NewAuthority(auth.AuthorityOptions{Tokens: o.tokens, Agents: o.agents,
		Profiles: func(name string) bool { return known[name] }})
	t.Cleanup(o.authority.Close)
	o.identify = &auth.Authenticator{Tokens: o.tokens, Agents: o.agents, Authority: o.authority}
	return o
}

// caller issues a token and returns the caller that it identifies.
func (o *office) caller(g auth.Grant) (auth.Token, caller.Caller) {
	o.Helper()
	g.Name, g.Principal = "test", "bob"
	made, value, err := o.tokens.Create(o.Context(), g)
	if err != nil {
		o.Fatal(err)
	}
	who, err := o.identify.Token(o.Context(), value)
	if err != nil {
		o.Fatal(err)
	}
	return made, who
}

// agent registers an agent for a caller and returns the caller that its token identifies.
func (o *office) agent(by caller.Caller) (agents.Agent, secret.Value, caller.Caller) {
	o.Helper()
	agent, token, err := o.agents.Register(o.Context(), agents.Registration{
		Name: "a", Type: agents.Supervised, PrincipalID: by.Name(),
		Inherited: agents.Inherited{Profile: by.Profile, Scopes: []string{auth.ScopeRun}, Credentials: by.Credentials,
			Expires: by.Expires()},
	}, by.Name())
	if err != nil {
		o.Fatal(err)
	}
	who, err := o.identify.Token(o.Context(), token)
	if err != nil {
		o.Fatal(err)
	}
	return agent, token, who
}

func (o *office) exec(statement string, args ...any) {
	o.Helper()
	err := o.db.Update(o.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(o.Context(), statement, args...)
		return err
	})
	if err != nil {
		o.Fatal(err)
	}
}

// When a credential stops being valid, the acts of its caller and of the agents that it registered
// end, also if another process makes the change without notifying this one (issue 23).
func TestWhatEndsACredentialEndsItsActs(t *testing.T) {
	for name, end := range map[string]func(o *office, token auth.Token){
		"revoked": func(o *office, token auth.Token) {
			if err := o.tokens.Revoke(o.Context(), token.ID); err != nil {
				o.Fatal(err)
			}
		},
		"expired": func(o *office, token auth.Token) {
			o.exec(
				`UPDATE token SET expires = 1 WHERE id = ?`, token.ID)
		},
		"a scope removed": func(o *office, token auth.Token) {
			o.exec(
				`UPDATE token SET scopes = 'agents' WHERE id = ?`, token.ID)
		},
		"another profile": func(o *office, token auth.Token) {
			o.exec(
				`UPDATE token SET profile = '' WHERE id = ?`, token.ID)
		},
		"deleted": func(o *office, token auth.Token) { o.exec(`DELETE FROM token WHERE id = ?`, token.ID) },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, "notes")
			token, who := o.caller(auth.Grant{Scopes: []string{"run", "agents"}, Profile: "notes",
				Expires: time.Now().Add(time.Hour)})
			_, agentToken, agent := o.agent(who)
			if agent.Profile != "notes" || agent.Expires().IsZero() {
				t.Errorf("got an agent with the profile %q until %v, want those of its creator", agent.Profile,
					agent.Expires())
			}
			_, other := o.caller(auth.Grant{Scopes: []string{"run"}})
			going, stop := o.authority.While(t.Context(), who)
			defer stop()
			ofAgent, stopAgent := o.authority.While(t.Context(), agent)
			defer stopAgent()
			requested := make(chan error, 1)
			defer o.authority.WhileKnown(t.Context(), agent, func(err error) { requested <- err })()
			ofOther, stopOther := o.authority.While(t.Context(), other)
			defer stopOther()
			end(o, token)
			<-going.Done()
			<-ofAgent.Done()
			if err := <-requested; !errors.Is(err, caller.ErrEnded) {
				t.Errorf("the requests of the agent ended with %v", err)
			}
			for whose, ctx := range map[string]context.Context{"its caller": going, "its agent": ofAgent} {
				if !errors.Is(context.Cause(ctx), caller.ErrEnded) {
					t.Errorf("%s: got the cause %v, want %v", whose, context.Cause(ctx), caller.ErrEnded)
				}
			}
			for whose, of := range map[string]caller.Caller{"its caller": who, "its agent": agent} {
				if err := o.authority.Check(t.Context(), of); !errors.Is(err, caller.ErrEnded) {
					t.Errorf("%s: got %v, want %v", whose, err, caller.ErrEnded)
				}
			}
			if _, err := o.identify.Token(t.Context(), agentToken); !errors.Is(err, auth.ErrInvalid) {
				t.Errorf("the agent's token: got %v, want that it is not valid", err)
			}
			if err := o.authority.Check(t.Context(), other); err != nil || ofOther.Err() != nil {
				t.Errorf("another token: %v, %v", err, ofOther.Err())
			}
		})
	}
}

// An agent also ends with its own credential. While it is suspended, its requests are not ended, so
// that they can be answered with the reason.
func TestWhatEndsAnAgent(t *testing.T) {
	o := newOffice(t)
	_, who := o.caller(auth.Grant{Scopes: []string{"run"}})
	a, _, agent := o.agent(who)
	going, stop := o.authority.While(t.Context(), agent)
	defer stop()
	requests, ended := context.WithCancelCause(t.Context())
	defer o.authority.WhileKnown(t.Context(), agent, ended)()
	if err := o.agents.SetStatus(t.Context(), a.ID, agents.Suspended, "ann"); err != nil {
		t.Fatal(err)
	}
	<-going.Done()
	if !errors.Is(context.Cause(going), caller.ErrInactive) || requests.Err() != nil {
		t.Errorf("suspended: %v, %v", context.Cause(going), requests.Err())
	}
	if err := o.agents.SetStatus(t.Context(), a.ID, agents.Active, "ann"); err != nil {
		t.Fatal(err)
	}
	if err := o.authority.Check(t.Context(), agent); err != nil {
		t.Errorf("resumed: %v", err)
	}
	if _, err := o.agents.Rotate(t.Context(), a.ID, "ann", who.Credentials); err != nil {
		t.Fatal(err)
	}
	<-requests.Done()
	if err := o.authority.Check(t.Context(), agent); !errors.Is(err, caller.ErrEnded) {
		t.Errorf("its token was rotated: %v", err)
	}
}

// The new token of an agent ends with the credential of the caller that rotated it.
func TestARotatedTokenInheritsFromWhoRotates(t *testing.T) {
	o := newOffice(t)
	_, creator := o.caller(auth.Grant{Scopes: []string{"run", "agents"}})
	token, other := o.caller(auth.Grant{Scopes: []string{"agents"}, Expires: time.Now().Add(time.Hour)})
	a, _, _ := o.agent(creator)
	rotated, err := o.agents.Rotate(t.Context(), a.ID, "bob", other.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := o.identify.Token(t.Context(), rotated)
	if err != nil || agent.Expires().IsZero() {
		t.Fatalf("%+v, %v", agent, err)
	}
	if err := o.tokens.Revoke(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := o.identify.Token(t.Context(), rotated); !errors.Is(err, auth.ErrInvalid) {
		t.Errorf("got %v, want that the token has ended", err)
	}
}

// A caller over the network without a credential, one that nobody knows, and one whose
// profile was deleted do nothing; the user of the machine has no credential and needs none.
func TestUnknownCredentials(t *testing.T) {
	o := newOffice(t, "notes")
	for name, who := range map[string]caller.Caller{
		"no credential":    {Principal: "bob", Kind: caller.User},
		"an agent without": {Principal: "agent_1", Kind: caller.Agent},
		"another kind":     {Principal: "bob", Kind: caller.User, Credentials: []caller.Credential{{ID: "x"}}},
		"a JWT, no issuer": {Principal: "bob", Kind: caller.User, Credentials: []caller.Credential{{ID: "jwt_1"}}},
		"an unknown token": {Principal: "bob", Kind: caller.User, Credentials: []caller.Credential{{ID: "tok_1"}}},
		"an unknown agent": {Principal: "agent_1", Kind: caller.Agent,
			Credentials: []caller.Credential{{ID: "agent_1"}}},
		"a deleted profile": {Principal: "bob", Kind: caller.Local, Profile: "gone"},
	} {
		if err := o.authority.Check(t.Context(), who); !errors.Is(err, caller.ErrEnded) &&
			!errors.Is(err, caller.ErrInactive) {
			t.Errorf("%s: got %v, want that it may not act", name, err)
		}
	}
	if err := o.authority.Check(t.Context(), caller.Caller{Principal: "root", Kind: caller.Local,
		Profile: "notes"}); err != nil {
		t.Errorf("the user of the machine: %v", err)
	}
}

// A token of a deleted profile is not valid, although it was not revoked.
func TestATokenOfADeletedProfile(t *testing.T) {
	o := newOffice(t)
	_, value, err := o.tokens.Create(t.Context(), auth.Grant{Name: "a", Principal: "bob", Profile: "gone",
		Scopes: []string{"admin"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.identify.Token(t.Context(), value)
	if reason, ok := auth.ReasonOf(err); !ok || reason != auth.Ended {
		t.Errorf("got %v (%q), want %q", err, reason, auth.Ended)
	}
}
