package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/database"
)

var shownField = regexp.MustCompile(`name="shown" value="([^"]*)"`)

// Issue 24: the page of an agent changes its type, permissions, budget and expiry. A form that
// shows an older state changes nothing.
func TestAnAgentIsChangedOnItsPage(t *testing.T) {
	s := serve(t, nil)
	a, _, err := s.agents.Register(t.Context(), agents.Registration{Name: "a <b>", Type: agents.Supervised,
		PrincipalID: "ann", Permissions: agents.Permissions{AllowedTools: []string{"files/read me"}}}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	page := "/agents/" + a.ID
	b := s.signIn("ann", "agents", "run")
	form := func() url.Values {
		body := b.get(page).body
		found := shownField.FindStringSubmatch(body)
		if found == nil || !strings.Contains(body, "files/read me") {
			t.Fatalf("got the page %s", body)
		}
		return url.Values{"shown": {found[1]}, "name": {a.Name}, "type": {"supervised"}, "allowed_engines": {""},
			"allowed_tools": {"files/read me\n"}, "blocked_tools": {""}, "daily_usd": {"100"},
			"hourly_requests": {"1000"}, "expires": {"never"}}
	}
	first := form()
	first.Set("type", "autonomous")
	first.Set("blocked_tools", "mail/send\r\n\r\nweb/post\r\n")
	first.Set("daily_usd", "2.5")
	first.Set("expires", "2100-01-01T00:00:00Z")
	if got := b.post(page, first); got.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	now, err := s.agents.Find(t.Context(), a.ID)
	if err != nil || now.Type != agents.Autonomous ||
		strings.Join(now.Permissions.BlockedTools, ",") != "mail/send,web/post" ||
		len(now.Permissions.AllowedTools) != 1 || now.Permissions.AllowedEngines != nil || now.Name != a.Name ||
		now.Expires.Year() != 2100 {
		t.Errorf("got %+v, %v", now, err)
	}
	standing, err := s.agents.Budget(t.Context(), a.ID)
	if err != nil || standing.Limits.DayCost.String() != "2.5" {
		t.Errorf("got the limits %+v, %v", standing.Limits, err)
	}
	if got := b.post(page, first); got.status != http.StatusConflict {
		t.Errorf("the same form again: got %d, want 409", got.status)
	}
	for field, value := range map[string]string{"type": "root", "expires": "soon", "daily_usd": "much",
		"hourly_requests": "x", "name": ""} {
		wrong := form()
		wrong.Set("type", "autonomous")
		wrong.Set(field, value)
		if got := b.post(page, wrong); got.status != http.StatusUnprocessableEntity ||
			!strings.Contains(got.body, "not changed: "+field) {
			t.Errorf("%s=%q: got %d %s", field, value, got.status, got.body)
		}
	}
	small := s.signIn("ann", "agents:supervised")
	if got := small.post(page, form()); got.status != http.StatusForbidden {
		t.Errorf("a token for supervised agents: got %d, want 403", got.status)
	}
	if got := s.signIn("bob", "agents").post(page, form()); got.status != http.StatusNotFound {
		t.Errorf("another principal: got %d, want 404", got.status)
	}
}

// Issue 24: the page of remote agents changes their trust level, suspends, resumes and unpins them.
func TestRemoteAgentsAreChangedOnTheirPage(t *testing.T) {
	s := serve(t, nil)
	if err := s.db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), `INSERT INTO manifest VALUES ('far <b>', '{}', 'standard', 1, 0)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	const page = "/remote-agents"
	form := func(do, level string) url.Values {
		return url.Values{"agent": {"far <b>"}, "do": {do}, "level": {level}}
	}
	looks, manages := s.signIn("ann", "agents"), s.signIn("ann", "admin")
	if got := looks.get(page); got.status != http.StatusOK || !strings.Contains(got.body, "far &lt;b&gt;") ||
		strings.Contains(got.body, "Unpin") {
		t.Errorf("with the scope agents: got %d %s", got.status, got.body)
	}
	if got := looks.post(page, form("suspend", "")); got.status != http.StatusForbidden {
		t.Errorf("suspended with the scope agents: got %d, want 403", got.status)
	}
	if got := s.signIn("ann", "run").get(page); got.status != http.StatusForbidden {
		t.Errorf("with the scope run: got %d, want 403", got.status)
	}
	for _, test := range []struct{ do, level, shows string }{
		{"level", "trusted", "<td>trusted</td>"}, {"suspend", "", ">suspended<"}, {"resume", "", ">pinned<"},
		{"unpin", "", "No agent of another installation is pinned"},
	} {
		if got := manages.post(page, form(test.do, test.level)); got.status != http.StatusSeeOther {
			t.Errorf("%s: got %d %s", test.do, got.status, got.body)
		}
		if got := manages.get(page); !strings.Contains(got.body, test.shows) {
			t.Errorf("%s: got %s, want %q", test.do, got.body, test.shows)
		}
	}
	for do, status := range map[string]int{"suspend": http.StatusNotFound, "level": http.StatusUnprocessableEntity,
		"pin": http.StatusUnprocessableEntity} {
		if got := manages.post(page, form(do, "best")); got.status != status {
			t.Errorf("%s after unpin: got %d, want %d", do, got.status, status)
		}
	}
}
