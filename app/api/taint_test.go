package api_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// An agent begins with what the conversation has read that registers it, so that a model cannot
// undo a rule about what was read by registering an agent (issue 24). The same is true for the
// caller that gets a new token of the agent.
func TestAnAgentBeginsWithWhatItsRegistrantHasRead(t *testing.T) {
	s := serve(t)
	tokens := auth.NewTokens(s.db, nil)
	conversation := func(token string) caller.Caller {
		t.Helper()
		who, err := (&auth.Authenticator{Tokens: tokens}).Token(t.Context(), secret.New(s.tokens[token]))
		if err != nil {
			t.Fatal(err)
		}
		who.Lineage = who.CredentialLineage()
		return who
	}
	read := func(who caller.Caller, server string) {
		t.Helper()
		if err := s.taint.Add(t.Context(), who, server); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what, id string, want ...string) {
		t.Helper()
		who := agents.Agent{ID: id, Owner: "ann"}.Caller()
		who.Lineage = who.CredentialLineage()
		got, err := s.taint.Servers(t.Context(), who)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q %v, want %q", what, got, err, want)
		}
	}
	expect("before a read", s.register("ann", "first"))
	read(conversation("ann"), "crm")
	read(conversation("admin"), "mail")
	second := s.register("ann", "second")
	expect("after a read", second, "crm")
	expect("registered by another token", s.register("bob", "third"))
	if status, answer := s.do("admin", "POST", "/v1/agents/"+second+"/token", ""); status != http.StatusOK {
		t.Fatalf("rotating: got %d %v", status, answer)
	}
	expect("with a token that another caller got", second, "crm", "mail")

	// Nothing is registered while it is unknown what the conversation has read.
	_, before := s.do("ann", "GET", "/v1/agents", "")
	if err := s.db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), `ALTER TABLE taint RENAME TO hidden`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if status, answer := s.do("ann", "POST", "/v1/agents", registration); status != http.StatusServiceUnavailable {
		t.Errorf("without the facts: got %d %v, want 503", status, answer)
	}
	if _, after := s.do("ann", "GET", "/v1/agents", ""); len(after["agents"].([]any)) != len(before["agents"].([]any)) {
		t.Errorf("without the facts: got the agents %v", after)
	}
}
