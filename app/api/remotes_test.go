package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
)

// Issue 24: remote agents are listed, re-leveled, suspended, resumed and unpinned over the API, by
// the scopes of the caller, and each change has a record with its author.
func TestRemoteAgents(t *testing.T) {
	s := serve(t)
	err := s.db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), `INSERT INTO manifest VALUES ('far/a b', '{}', 'standard', 1, 0),
			('near', '{}', 'standard', 0, 0), ('other', '{}', 'unknown', 1, 0)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.register("admin", "own")
	const far = "/v1/remote-agents/far%2Fa%20b"
	_, grant, err := auth.NewTokens(s.db, nil).Create(t.Context(), auth.Grant{Name: "test", Principal: "ann",
		Scopes: []string{"admin"}, Profile: "small"})
	if err != nil {
		t.Fatal(err)
	}
	s.tokens["profile"] = grant.Reveal()
	if _, list := s.do("ann", "GET", "/v1/remote-agents?limit=1", ""); fmt.Sprint(list) !=
		"map[agents:[map[agent_id:far/a b reputation:5 suspended:false trust_level:standard]]]" {
		t.Errorf("the first page: got %v", list)
	}
	if _, list := s.do("ann", "GET", "/v1/remote-agents?after=far%2Fa%20b", ""); fmt.Sprint(list) !=
		"map[agents:[map[agent_id:other reputation:5 suspended:false trust_level:unknown]]]" {
		t.Errorf("the second page: got %v", list)
	}
	for _, test := range []struct {
		as, method, path, body string
		status                 int
		shows                  string
	}{
		{"runner", "GET", "/v1/remote-agents", "", 403, ""},
		{"own", "GET", "/v1/remote-agents", "", 403, ""},
		{"profile", "GET", "/v1/remote-agents", "", 403, ""},
		{"profile", "DELETE", far, "", 403, ""},
		{"ann", "PATCH", far, `{"trust_level": "trusted"}`, 403, ""},
		{"own", "PATCH", far, `{"trust_level": "trusted"}`, 403, ""},
		{"ann", "DELETE", far, "", 403, ""},
		{"", "DELETE", far, "", 401, ""},
		{"admin", "PATCH", far, `{"trust_level": "trusted", "suspended": true}`, 200,
			"map[agent_id:far/a b reputation:5 suspended:true trust_level:trusted]"},
		{"admin", "PATCH", far, `{"suspended": false}`, 200,
			"map[agent_id:far/a b reputation:5 suspended:false trust_level:trusted]"},
		{"ann", "GET", far, "", 200, "map[agent_id:far/a b reputation:5 suspended:false trust_level:trusted]"},
		{"admin", "PATCH", far, `{"trust_level": "best"}`, 422, ""},
		{"admin", "PATCH", far, `{"trust_level": null}`, 422, ""},
		{"admin", "PATCH", far, `{}`, 422, ""},
		{"admin", "PATCH", "/v1/remote-agents/near", `{"suspended": true}`, 404, ""},
		{"admin", "DELETE", "/v1/remote-agents/near", "", 404, ""},
		{"ann", "GET", "/v1/remote-agents/near", "", 404, ""},
		{"admin", "DELETE", far, "", 200, "map[agent_id:far/a b]"},
		{"admin", "DELETE", far, "", 404, ""},
	} {
		status, got := s.do(test.as, test.method, test.path, test.body)
		if status != test.status || test.shows != "" && fmt.Sprint(got) != test.shows {
			t.Errorf("%s %s %s %s: got %d %v, want %d %s", test.as, test.method, test.path, test.body, status, got,
				test.status, test.shows)
		}
	}
	var changes []string
	if err := audit.Tail(t.Context(), s.log, 1000, false, func(r audit.Record) error {
		if r.Kind == audit.KindOperator && strings.HasPrefix(r.Detail, "agent far") {
			changes = append(changes, r.Principal+": "+r.Detail)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"admin: agent far/a b trust level trusted, suspended", "admin: agent far/a b resumed",
		"admin: agent far/a b unpinned"}
	if !slices.Equal(changes, want) {
		t.Errorf("the log has %q, want %q", changes, want)
	}
}
