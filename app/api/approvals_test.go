package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// token makes a token and keeps it under a name. It returns its ID.
func (s *served) token(name string, g auth.Grant) string {
	s.Helper()
	g.Name = name
	made, value, err := auth.NewTokens(s.db, nil).Create(s.Context(), g)
	if err != nil {
		s.Fatal(err)
	}
	s.tokens[name] = value.Reveal()
	return made.ID
}

// asks asks a question, and returns its path and the verdict.
func (s *served) asks(change func(*approval.Question)) (path string, verdict chan approval.Verdict) {
	s.Helper()
	q := approval.Question{
		ID: telemetry.NewID("apr"), Asked: time.Now(), Expires: time.Now().Add(time.Minute),
		Asking: approval.Asking{Principal: "ann", CallerKind: "agent", SessionID: "ses_1", RunID: "run_1",
			CallID: "call_1"},
		Subject: approval.Subject{ServerID: "files", ToolName: "write_file",
			Arguments:        json.RawMessage(`{"path": "/a"}`),
			DefinitionDigest: "sha256:d", PolicyVersion: "v1", CodeHash: "c", Code: "print(1)"},
		Grounds: approval.Grounds{Risk: "write", Rules: []string{"default.ask"}},
	}
	q.CallerKind = "user"
	if change != nil {
		change(&q)
	}
	opened := make(chan bool, 1)
	defer s.desk.Subscribe(func(e approval.Event) {
		if e.Open && e.Question.ID == q.ID {
			opened <- true
		}
	})()
	verdict = make(chan approval.Verdict, 1)
	go func() {
		v, _ := s.desk.Ask(s.Context(), q)
		verdict <- v
		opened <- false
	}()
	<-opened
	return "/v1/approvals/" + q.ID, verdict
}

// digest returns the digest of a question that a caller can see.
func (s *served) digest(as, path string) string {
	s.Helper()
	status, q := s.do(as, "GET", path, "")
	if status != 200 {
		s.Fatalf("%s: %d %v", path, status, q)
	}
	return q["digest"].(string)
}

// Issue 27.11: each list whose entries have a time takes since and until.
func TestListsTakeAPeriod(t *testing.T) {
	s := serve(t)
	s.token("phone", auth.Grant{Principal: "ann", Scopes: []string{"approve"}})
	kind := s.kindOf("phone")
	s.register("ann", "robot")
	path, verdict := s.asks(func(q *approval.Question) { q.CallerKind = kind })
	s.do("phone", "POST", path, fmt.Sprintf(`{"decision": "approve", "digest": %q, "for": "run"}`,
		s.digest("phone", path)))
	<-verdict
	s.asks(func(q *approval.Question) { q.CallerKind, q.RunID = kind, "run_2" })
	for list, as := range map[string]string{"agents": "ann", "approvals": "phone", "grants": "phone"} {
		for query, want := range map[string]int{"": 1, "?since=1h": 1, "?since=2020-01-01": 1, "?until=1h": 0,
			"?until=2020-01-01T00:00:00Z": 0} {
			status, got := s.do(as, "GET", "/v1/"+list+query, "")
			if entries, _ := got[list].([]any); status != 200 || len(entries) != want {
				t.Errorf("%s%s: got %d %v, want %d", list, query, status, got, want)
			}
		}
		for _, query := range []string{"?since=yesterday", "?since=1h&until=2h"} {
			if status, got := s.do(as, "GET", "/v1/"+list+query, ""); status != 422 {
				t.Errorf("%s%s: got %d %v, want 422", list, query, status, got)
			}
		}
	}
}

// Issue 31: questions are listed, shown and answered over /v1, by their owner and by the roles that they ask; a
// token without the scope, an agent, another person and the token that asks get nowhere.
func TestApprovals(t *testing.T) {
	s := serve(t)
	own := s.token("host", auth.Grant{Principal: "ann", Scopes: []string{"run", "approve"}})
	s.token("phone", auth.Grant{Principal: "ann", Scopes: []string{"approve"}})
	s.token("bob's", auth.Grant{Principal: "bob", Scopes: []string{"approve"}})
	s.token("profile", auth.Grant{Principal: "ann", Scopes: []string{"approve"}, Profile: "small"})
	s.register("ann", "robot")
	kind := s.kindOf("phone")
	about := func(q *approval.Question) { q.CallerKind, q.Credentials = kind, own }
	path, verdict := s.asks(about)
	digest := s.digest("phone", path)
	yes := fmt.Sprintf(`{"decision": "approve", "digest": %q}`, digest)
	for _, test := range []struct {
		as, method, path, body string
		status                 int
		says                   string
	}{
		{"", "GET", "/v1/approvals", "", 401, ""},
		{"runner", "GET", "/v1/approvals", "", 403, "approve"},
		{"robot", "GET", "/v1/approvals", "", 403, "approve"},
		{"robot", "POST", path, yes, 403, "approve"},
		{"bob's", "GET", path, "", 404, "no such question"},
		{"bob's", "POST", path, yes, 404, "no such question"},
		{"bob's", "GET", path + "/coverage", "", 404, "no such question"},
		{"profile", "POST", path, yes, 404, "no such question"},
		{"host", "POST", path, yes, 403, "the token that asks cannot approve"},
		{"phone", "POST", path, `{"decision": "approve", "digest": "sha256:other"}`, 409, "changed after it was asked"},
		{"phone", "POST", path, `{"decision": "yes", "digest": "x"}`, 422, "approve or deny"},
		{"phone", "POST", path, strings.Replace(yes, "}", `, "for": "ever"}`, 1), 422,
			"is not call, run, session or a date"},
		{"phone", "POST", path, strings.Replace(yes, "}", `, "for": "2001-01-01"}`, 1), 422, "not in the future"},
		{"phone", "POST", path, strings.Replace(yes, "}", `, "for": "9999-01-01"}`, 1), 422, "more than 90 days"},
		{"phone", "POST", path, `{"decision": "approve", "digest": "x", "forever": true}`, 422, "forever"},
		{"phone", "POST", "/v1/approvals/apr_none", yes, 404, ""},
		{"phone", "GET", path + "/coverage", "", 404, ""},
		{"phone", "GET", path, "", 200, "print(1)"},
		{"phone", "POST", path, yes, 200, "approve"},
		{"phone", "POST", path, yes, 409, "answered already: approved by"},
	} {
		status, got := s.do(test.as, test.method, test.path, test.body)
		if text := fmt.Sprint(got); status != test.status || !strings.Contains(text, test.says) {
			t.Errorf("%s %s %s %s: got %d %s, want %d and %q", test.as, test.method, test.path, test.body, status, text,
				test.status, test.says)
		}
	}
	if v := <-verdict; v.Answer != approval.Yes || !strings.Contains(v.By, ", API") || len(v.Approvers) != 1 {
		t.Errorf("got %+v, want a Yes over the API", v)
	}
	path, verdict = s.asks(about)
	_, list := s.do("phone", "GET", "/v1/approvals", "")
	if text := fmt.Sprint(list); !strings.Contains(text, "write_file") || strings.Contains(text, "print(1)") ||
		!strings.Contains(text, "suspended_since:2026-11-28T09:00:00Z") {
		t.Errorf("got %s, want the question of a suspended run without its code", text)
	}
	if _, list := s.do("bob's", "GET", "/v1/approvals", ""); fmt.Sprint(list) != "map[approvals:[]]" {
		t.Errorf("another person sees %v", list)
	}
	// The token that asks may refuse, which reduces authority.
	if status, got := s.do("host", "POST", path, fmt.Sprintf(
		`{"decision": "deny", "digest": %q, "reason": "not on\nFridays"}`, s.digest("host", path))); status != 200 {
		t.Errorf("refusing: %d %v", status, got)
	}
	if v := <-verdict; v.Answer != approval.No || !strings.HasPrefix(v.Reason, "not on") {
		t.Errorf("got %+v, want the reason", v)
	}
}

// Issue 23: a token that may see all questions announced an action for its agent, and approved it.
func TestATokenDoesNotApproveForItsAgent(t *testing.T) {
	s := serve(t)
	s.token("registrar", auth.Grant{Principal: "ann", Scopes: []string{"admin"}})
	agent := s.register("registrar", "robot")
	path, verdict := s.asks(func(q *approval.Question) {
		q.Principal, q.CallerKind, q.SessionID, q.Credentials = agent, "agent", "conversation_1", agent
	})
	yes := fmt.Sprintf(`{"decision": "approve", "digest": %q}`, s.digest("registrar", path))
	if status, got := s.do("registrar", "POST", path, yes); status != 403 ||
		!strings.Contains(fmt.Sprint(got), "the token that asks cannot approve") {
		t.Errorf("the token that registered the agent: got %d %v", status, got)
	}
	if status, got := s.do("admin", "POST", path, yes); status != 200 {
		t.Errorf("another administrator: got %d %v", status, got)
	}
	<-verdict
}

// kindOf returns the kind of the callers with a token, as questions have it.
func (s *served) kindOf(name string) string {
	who, err := auth.NewTokens(s.db, nil).Authenticate(s.Context(), secret.New(s.tokens[name]))
	if err != nil {
		s.Fatal(err)
	}
	return string(who.Kind)
}

// Issue 31: an approval covers what the person chose and nothing else, is listed with its use, and can be withdrawn.
func TestGrants(t *testing.T) {
	s := serve(t)
	s.token("phone", auth.Grant{Principal: "ann", Scopes: []string{"approve"}})
	s.token("bob's", auth.Grant{Principal: "bob", Scopes: []string{"approve"}})
	kind := s.kindOf("phone")
	tomorrow := time.Now().AddDate(0, 0, 1).Format(time.DateOnly)
	type change = func(*approval.Question)
	others := map[string]change{
		"another run": func(q *approval.Question) { q.RunID, q.Code, q.CodeHash = "run_2", "print(2)", "c2" },
		"another session": func(q *approval.Question) {
			q.RunID, q.CodeHash, q.SessionID = "run_3", "c3", "ses_2"
		},
		"another person":     func(q *approval.Question) { q.Principal = "bob" },
		"another tool":       func(q *approval.Question) { q.ToolName = "delete_file" },
		"another definition": func(q *approval.Question) { q.DefinitionDigest = "sha256:e" },
		"another policy":     func(q *approval.Question) { q.PolicyVersion = "v2" },
		"another reason":     func(q *approval.Question) { q.Rules = []string{"tainted"} },
		"another risk":       func(q *approval.Question) { q.Risk = "destructive" },
		"another profile":    func(q *approval.Question) { q.Profile = "small" },
		"another role":       func(q *approval.Question) { q.Approve = []string{"finance"} },
		"two people":         func(q *approval.Question) { q.People = 2 },
		"a server's own question": func(q *approval.Question) {
			q.Elicitation = &approval.Elicitation{URL: "https://example.com"}
		},
	}
	for extent, covered := range map[string][]string{"call": nil, "run": nil, "session": {"another run"},
		tomorrow: {"another run", "another session"}} {
		path, verdict := s.asks(func(q *approval.Question) { q.CallerKind = kind })
		if status, got := s.do("phone", "POST", path, fmt.Sprintf(`{"decision": "approve", "digest": %q, "for": %q}`,
			s.digest("phone", path), extent)); status != 200 {
			t.Fatalf("%s: %d %v", extent, status, got)
		}
		<-verdict
		for name, change := range others {
			path, verdict := s.asks(func(q *approval.Question) { q.CallerKind = kind; change(q) })
			id := path[strings.LastIndex(path, "/")+1:]
			open := slices.ContainsFunc(s.desk.Posted(), func(p approval.Posted) bool { return p.ID == id })
			if open == slices.Contains(covered, name) {
				t.Errorf("for %s: %s: open is %t", extent, name, open)
			}
			if posted, _, err := s.desk.Find(id); err == nil {
				if err := s.desk.Answer(approval.Response{ID: id, Digest: posted.Digest}); err != nil {
					t.Error(err)
				}
			}
			<-verdict
		}
		if _, list := s.do("bob's", "GET", "/v1/grants", ""); fmt.Sprint(list) != "map[grants:[]]" {
			t.Errorf("another person sees %v", list)
		}
		_, list := s.do("phone", "GET", "/v1/grants", "")
		grants := list["grants"].([]any)
		if extent == "call" {
			if len(grants) != 0 {
				t.Errorf("one call: got %v", grants)
			}
			continue
		}
		if len(grants) != 1 || grants[0].(map[string]any)["used"] != float64(len(covered)) {
			t.Fatalf("for %s: got %v, want one grant with %d uses", extent, grants, len(covered))
		}
		grant := "/v1/grants/" + grants[0].(map[string]any)["id"].(string)
		for _, test := range []struct {
			as     string
			status int
		}{{"bob's", 404}, {"runner", 403}, {"phone", 200}, {"phone", 404}} {
			if status, got := s.do(test.as, "DELETE", grant, ""); status != test.status {
				t.Errorf("%s withdraws: got %d %v, want %d", test.as, status, got, test.status)
			}
		}
		path, verdict = s.asks(func(q *approval.Question) { q.CallerKind = kind })
		if len(s.desk.Posted()) != 1 {
			t.Errorf("for %s: withdrawn, and not asked", extent)
		}
		if status, got := s.do("phone", "POST", path, fmt.Sprintf(`{"decision": "deny", "digest": %q}`,
			s.digest("phone", path))); status != 200 {
			t.Errorf("%d %v", status, got)
		}
		<-verdict
	}
	// A destructive call is approved for its run at most.
	path, verdict := s.asks(func(q *approval.Question) { q.CallerKind, q.Risk = kind, "destructive" })
	for extent, want := range map[string]int{"session": 422, tomorrow: 422} {
		if status, got := s.do("phone", "POST", path, fmt.Sprintf(`{"decision": "approve", "digest": %q, "for": %q}`,
			s.digest("phone", path), extent)); status != want {
			t.Errorf("a destructive call for %s: %d %v", extent, status, got)
		}
	}
	if err := s.desk.Answer(approval.Response{ID: path[len("/v1/approvals/"):],
		Digest: s.digest("phone", path)}); err != nil {
		t.Error(err)
	}
	<-verdict
}

// Issue 31: two people who agree to different things agree to the less, and a grant ends with the token of one of them.
func TestGrantsOfTwoPeople(t *testing.T) {
	s := serve(t)
	s.token("phone", auth.Grant{Principal: "ann", Scopes: []string{"approve"}})
	id := s.token("boss", auth.Grant{Principal: "bob", Scopes: []string{"admin"}})
	kind := s.kindOf("phone")
	two := func(q *approval.Question) { q.CallerKind, q.People = kind, 2 }
	path, verdict := s.asks(two)
	answer := func(as, extent string) map[string]any {
		status, got := s.do(as, "POST", path, fmt.Sprintf(`{"decision": "approve", "digest": %q, "for": %q}`,
			s.digest(as, path), extent))
		if status != 200 {
			t.Fatalf("%s: %d %v", as, status, got)
		}
		return got
	}
	if got := answer("phone", time.Now().AddDate(0, 0, 7).Format(time.DateOnly)); !strings.Contains(
		fmt.Sprint(got["waits"]), "waits for another person") {
		t.Errorf("got %v, want who has to approve", got)
	}
	if status, got := s.do("phone", "POST", path, fmt.Sprintf(`{"decision": "approve", "digest": %q}`,
		s.digest("phone", path))); status != 403 {
		t.Errorf("the same person again: %d %v", status, got)
	}
	answer("boss", "session")
	if v := <-verdict; v.For.Reach != approval.ThisSession {
		t.Errorf("got %v, want the session", v.For)
	}
	_, verdict = s.asks(two)
	if v := <-verdict; !v.ByGrant {
		t.Errorf("in the session: got %+v", v)
	}
	if err := s.issued.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	path, verdict = s.asks(two)
	if len(s.desk.Posted()) != 1 {
		t.Error("after the token was revoked, the call is not asked about")
	}
	if err := s.desk.Answer(approval.Response{ID: path[len("/v1/approvals/"):],
		Digest: s.digest("phone", path)}); err != nil {
		t.Error(err)
	}
	<-verdict
}
