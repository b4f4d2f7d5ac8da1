package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/api"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/taint"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// served is the API on a real database and log, with tokens of several people.
type served struct {
	*testing.T
	url    string
	issued *auth.Tokens      // by the server itself, which knows at once what is revoked there
	tokens map[string]string // by name
	spec   map[string]any
	db     *database.DB
	taint  *taint.Store
	log    string // the directory of the audit log
	desk   *approval.Desk
}

// directory is the service with its activity.
type directory struct {
	*agents.Service
	log string
}

func (d directory) Activity(id string, period audit.Period, before uint64, n int) ([]agents.Entry, error) {
	return agents.Activity(d.log, id, period, before, n)
}

func serve(t *testing.T) *served { return serveWith(t, nil) }

// serveWith is serve with engines.
func serveWith(t *testing.T, engines api.Verifications) *served {
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := databasetest.Open(t.Context(), filepath.Join(dir, "state.db"), agents.Schema, auth.Schema,
		agents.SchemaInherited, agents.SchemaApprovers,
		agents.SchemaLists, agents.SchemaDebits, iatp.Schema, taint.Schema,
		agents.SchemaSelections, auth.SchemaUses, auth.SchemaCreators, auth.SchemaFacts, auth.SchemaSignOuts)
	if err != nil {
		t.Fatal(err)
	}
	service := agents.New(agents.Options{Database: db, Log: log})
	acts, err := admission.New(admission.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	end, err := acts.OpenAgents(admission.AgentOptions{Agents: service, Database: db})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{T: t, tokens: map[string]string{}, issued: auth.NewTokens(db, nil), db: db,
		log: filepath.Join(dir, "audit")}
	s.taint = taint.New(func(context.Context) (*database.DB, error) { return db, nil }, nil)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	trust, err := iatp.New(iatp.Options{Database: db, Agents: service, Log: log, Identity: agekey.Of(identity)})
	if err != nil {
		t.Fatal(err)
	}
	tokens := s.issued
	for name, scopes := range map[string][]string{"ann": {"agents", "run"}, "bob": {"agents", "run"},
		"admin": {"admin"}, "runner": {"run"}, "asker": {"verify"}, "manager": {"agents"}} {
		s.tokens[name] = create(t, tokens, name, scopes)
	}
	s.tokens["small"] = create(t, tokens, "ann", []string{"agents:supervised", "run"})
	authority := auth.NewAuthority(auth.AuthorityOptions{Tokens: tokens, Agents: service})
	t.Cleanup(authority.Close)
	identify := (&auth.Authenticator{Tokens: tokens, Agents: service, Authority: authority}).Identify
	inForce := func(who caller.Caller) bool { return authority.Check(context.Background(), who) == nil }
	isOwn := func(who caller.Caller, asked []string) (bool, error) {
		return authority.IsOwn(context.Background(), who, asked)
	}
	s.desk, err = approval.OpenDesk(filepath.Join(dir, "approvals"),
		&approval.Options{InForce: inForce, IsOwn: isOwn})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(
		api.New(api.Options{Agents: directory{service, s.log}, Remotes: trust, Taint: s.taint, Admission: acts,
			Approvals:      s.desk,
			Lists:          struct{ api.Lists }{}, // no test asks for them
			SuspendedSince: func(string) time.Time { return time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC) },
			Identify:       identify, Verifications: engines}))
	t.Cleanup(func() {
		server.Close()
		end()
		_, _, _ = s.desk.Close(), db.Close(), log.Close()
	})
	s.url = server.URL
	raw, err := os.ReadFile("openapi.json")
	if err == nil {
		err = json.Unmarshal(raw, &s.spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t *testing.T, tokens *auth.Tokens, principal string, scopes []string) string {
	_, value, err := tokens.Create(t.Context(), auth.Grant{Name: "test", Principal: principal, Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return value.Reveal()
}

// do makes a request with a named token, checks the answer against the OpenAPI file, and
// returns its status and its body.
func (s *served) do(as, method, path, body string) (int, map[string]any) {
	s.Helper()
	response, raw := s.send(as, method, path, body)
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil {
		s.Fatalf("%s %s: %q: %v", method, path, raw, err)
	}
	return response.StatusCode, value
}

// send is do without decoding the answer.
func (s *served) send(as, method, path, body string) (*http.Response, []byte) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if as != "" {
		r.Header.Set("Authorization", "Bearer "+s.tokens[as])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	s.conforms(method, path, response.StatusCode, raw)
	return response, raw
}

// conforms checks an answer against the OpenAPI file.
func (s *served) conforms(method, path string, status int, body []byte) {
	s.Helper()
	path, _, _ = strings.Cut(path, "?")
	for pattern, item := range s.spec["paths"].(map[string]any) {
		if !regexp.MustCompile("^" + regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(pattern, "[^/]+") +
			"$").MatchString(path) {
			continue
		}
		operation, ok := item.(map[string]any)[strings.ToLower(method)].(map[string]any)
		if !ok {
			continue
		}
		described, ok := operation["responses"].(map[string]any)[fmt.Sprint(status)].(map[string]any)
		if !ok {
			s.Errorf("%s %s: the file does not describe the status %d: %s", method, pattern, status, body)
			return
		}
		content := described["content"].(map[string]any)["application/json"].(map[string]any)["schema"]
		document, err := json.Marshal(map[string]any{"$defs": s.spec["components"].(map[string]any)["schemas"],
			"allOf": []any{content}})
		if err != nil {
			s.Fatal(err)
		}
		compiled, err := schema.Compile(bytes.ReplaceAll(document, []byte("#/components/schemas/"), []byte("#/$defs/")))
		if err != nil {
			s.Fatal(err)
		}
		if err := compiled.Validate(body); err != nil {
			s.Errorf("%s %s %d: %s is not as the file describes it: %v", method, pattern, status, body, err)
		}
		return
	}
}

const registration = `{"name": "DataAnalyst", "type": "supervised", "principal_id": null,
	"permissions": {"allowed_engines": ["math", "logic", "sql"], "blocked_tools": ["execute_code"]},
	"budget": {"max_daily_cost_usd": 100, "max_requests_per_hour": 500}}`

// register registers an agent with a named token and keeps its token under its name.
func (s *served) register(as, name string) string {
	s.Helper()
	status, agent := s.do(as, "POST", "/v1/agents", strings.Replace(registration, "DataAnalyst", name, 1))
	if status != http.StatusCreated {
		s.Fatalf("%d %v", status, agent)
	}
	s.tokens[name] = agent["agent_token"].(string)
	return agent["agent_id"].(string)
}

const select1 = `{"action": {"type": "execute_sql", "query": "SELECT 1"}, "context": {"conversation_id": "c", ` +
	`"step_number": %d}}`

// an agent from its registration to its activity.
func TestAnAgentsLife(t *testing.T) {
	s := serve(t)
	id := s.register("ann", "DataAnalyst")
	for step, want := range []string{"APPROVED", "APPROVED", "DENIED"} {
		status, decision := s.do("DataAnalyst", "POST", "/v1/agents/"+id+"/actions", fmt.Sprintf(select1, step+1))
		if status != http.StatusOK || decision["decision"] != want {
			t.Errorf("step %d: %d %v, want %s", step+1, status, decision, want)
		}
	}
	if _, ruling := s.do("ann", "POST", "/v1/agents/"+id+"/tools/my_custom_tool",
		`{"parameters": {"x": "database"}}`); ruling["approved"] != false ||
		ruling["blocked_reason"] != "Unknown tool 'my_custom_tool' requires explicit allowlisting (risk_score=0.2)" {
		t.Errorf("%v", ruling)
	}
	_, budget := s.do("ann", "GET", "/v1/agents/"+id+"/budget", "")
	if got := fmt.Sprint(
		budget); got != "map[cost:map[current_daily_usd:0 max_daily_usd:100] requests:map[current_hour:4 "+
		"max_per_hour:500]]" {
		t.Error(got)
	}
	_, activity := s.do("DataAnalyst", "GET", "/v1/agents/"+id+"/activity?limit=2", "")
	if entries := activity["activity"].([]any); len(entries) != 2 ||
		entries[1].(map[string]any)["decision"] != "DENIED" {
		t.Errorf("%v", entries)
	}
	for query, want := range map[string]int{"since=1h": 4, "until=2020-01-01": 0, "since=2020-01-01&until=1h": 0} {
		_, activity := s.do("ann", "GET", "/v1/agents/"+id+"/activity?"+query, "")
		if got := len(activity["activity"].([]any)); got != want {
			t.Errorf("%s: got %d attempts, want %d", query, got, want)
		}
	}
	if status, _ := s.do("ann", "POST", "/v1/agents/"+id+"/status",
		`{"status": "suspended"}`); status != http.StatusOK {
		t.Errorf("suspending: %d", status)
	}
	if _, decision := s.do("DataAnalyst", "POST", "/v1/agents/"+id+"/actions",
		fmt.Sprintf(select1, 9)); decision["decision"] != "DENIED" {
		t.Errorf("suspended: %v", decision)
	}
	old := s.tokens["DataAnalyst"]
	_, rotated := s.do("ann", "POST", "/v1/agents/"+id+"/token", "")
	if rotated["agent_token"] == old {
		t.Error("the same token")
	}
	if status, _ := s.do("DataAnalyst", "GET", "/v1/agents/"+id, ""); status != http.StatusUnauthorized {
		t.Errorf("the old token: %d", status)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	s := serve(t)
	own, other := s.register("ann", "own"), s.register("bob", "other")
	for _, tc := range []struct {
		as, method, path, body string
		want                   int
	}{
		{"", "GET", "/v1/agents", "", 401},
		{"stranger", "GET", "/v1/agents", "", 401},
		{"runner", "GET", "/v1/agents", "", 403},
		{"runner", "POST", "/v1/agents", registration, 403},
		// issue 23: it would use up ann's rate and budget
		{"bob", "POST", "/v1/agents", strings.Replace(registration, "null", `"ann"`, 1), 403},
		{"admin", "POST", "/v1/agents", strings.Replace(registration, "null", `"ann"`, 1), 403},
		{"runner", "GET", "/v1/agents/" + own, "", 403},
		{"ann", "GET", "/v1/agents/" + own, "", 200},
		{"ann", "GET", "/v1/agents/" + other, "", 404},
		{"ann", "GET", "/v1/agents/agent_none", "", 404},
		{"ann", "POST", "/v1/agents/" + other + "/status", `{"status": "killed"}`, 404},
		{"ann", "POST", "/v1/agents/" + other + "/token", ``, 404},
		{"ann", "POST", "/v1/agents/" + other + "/actions", fmt.Sprintf(select1, 1), 404},
		{"admin", "GET", "/v1/agents/" + other, "", 200},
		{"own", "GET", "/v1/agents/" + own, "", 200},
		{"own", "GET", "/v1/agents/" + other, "", 404},
		{"own", "POST", "/v1/agents/" + other + "/actions", fmt.Sprintf(select1, 1), 404},
		{"own", "GET", "/v1/agents", "", 403},
		{"own", "POST", "/v1/agents", registration, 403},
		{"own", "POST", "/v1/agents/" + own + "/status", `{"status": "active"}`, 403},
		{"own", "POST", "/v1/agents/" + own + "/token", ``, 403},
		{"own", "POST", "/v1/agents/" + own + "/signal", `{"signal": "SIGCONT"}`, 403}, // T39: never the agent
		{"ann", "POST", "/v1/agents/" + other + "/signal", `{"signal": "SIGKILL"}`, 404},
		{"ann", "POST", "/v1/agents/" + own + "/signal", `{"signal": "SIGSTOP"}`, 200},
		{"ann", "POST", "/v1/agents/" + own + "/signal", `{"signal": "SIGKILL"}`, 200},
		{"ann", "POST", "/v1/agents/" + own + "/signal", `{"signal": "SIGCONT"}`, 409},
	} {
		if status, body := s.do(tc.as, tc.method, tc.path, tc.body); status != tc.want {
			t.Errorf("%s %s %s: %d %v, want %d", tc.as, tc.method, tc.path, status, body, tc.want)
		}
	}
	_, list := s.do("ann", "GET", "/v1/agents", "")
	if agents := list["agents"].([]any); len(agents) != 1 || agents[0].(map[string]any)["agent_id"] != own {
		t.Errorf("ann sees %v", agents)
	}
}

func TestBadRequests(t *testing.T) {
	s := serve(t)
	id := s.register("ann", "own")
	for _, tc := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/v1/agents", ``, 422},
		{"POST", "/v1/agents", `[]`, 422},
		{"POST", "/v1/agents", `{`, 422},
		{"POST", "/v1/agents", `{"name": "a", "name": "b", "type": "trusted"}`, 422},
		{"POST", "/v1/agents", `{"name": "a", "type": "root"}`, 422},
		{"POST", "/v1/agents", `{"name": "a", "type": "trusted", "trust_level": 3}`, 422},
		{"POST", "/v1/agents", `{"name": "` + strings.Repeat("a", 5<<20) + `"}`, 413},
		{"POST", "/v1/agents/" + id + "/actions", `{"action": {}, "context": {}, "approved": true}`, 422},
		{"POST", "/v1/agents/" + id + "/tools/x%00y", `{}`, 422},
		{"POST", "/v1/agents/" + id + "/status", `{"status": "immortal"}`, 422},
		{"POST", "/v1/agents/" + id + "/signal", `{"signal": "SIGTERM"}`, 422},
		{"GET", "/v1/agents?limit=0", ``, 422},
		{"GET", "/v1/agents?limit=ten", ``, 422},
		{"GET", "/v1/agents?limt=1", ``, 422},
		{"GET", "/v1/agents?limit=1&limit=2", ``, 422},
		{"GET", "/v1/agents?limit=1;after=x", ``, 422},
		{"GET", "/v1/agents?limit=%zz", ``, 422},
		{"GET", "/v1/agents?limit=1&after=x&since=2026-01-01&until=2026-01-02", ``, 200},
		{"POST", "/v1/agents?dry=1", `{}`, 422},
		{"GET", "/v1/agents/" + id + "/activity?limit=100000", ``, 422},
		{"DELETE", "/v1/agents", ``, 405},
		{"GET", "/v1/elsewhere", ``, 404},
	} {
		if status, body := s.do("ann", tc.method, tc.path, tc.body); status != tc.want {
			t.Errorf("%s %s %.60s: %d %v, want %d", tc.method, tc.path, tc.body, status, body, tc.want)
		}
	}
	// A malformed field of an announcement is denied by a decision, which is in the activity.
	status, decision := s.do("ann", "POST", "/v1/agents/"+id+"/actions", `{"action": {"type": "calculate"}}`)
	if status != 200 || decision["error"].(map[string]any)["code"] != "QWED-AGENT-CTX-001" {
		t.Errorf("%d %v", status, decision)
	}
}
