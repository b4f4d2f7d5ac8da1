package api_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheFileDescribesEveryRoute asks for each path and method of the file.
func TestTheFileDescribesEveryRoute(t *testing.T) {
	s := serve(t)
	var source []byte
	for _, name := range []string{"agents.go", "approvals.go", "lists.go", "remotes.go", "verify.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	routes := regexp.MustCompile(`h\.route\("([A-Z]+) ([^"]+)",`).FindAllStringSubmatch(string(source), -1)
	for _, m := range regexp.MustCompile(`(?m)^\t"?(\w+?)(?:Engine|"): +\{`).FindAllStringSubmatch(string(source), -1) {
		question := strings.Replace(m[1], "auto", "natural_language", 1)
		routes = append(routes, []string{"", "POST", "/v1/verify/" + question})
	}
	if len(routes) == 0 {
		t.Fatal("no routes found")
	}
	described := 0
	for _, route := range routes {
		item, _ := s.spec["paths"].(map[string]any)[route[2]].(map[string]any)
		if item[strings.ToLower(route[1])] == nil {
			t.Errorf("the file does not describe %s %s", route[1], route[2])
		}
	}
	for _, item := range s.spec["paths"].(map[string]any) {
		described += len(item.(map[string]any))
	}
	if described != len(routes)+1 { // and the file itself
		t.Errorf("the file describes %d operations, there are %d", described, len(routes)+1)
	}
}

// the SDK sends null for omitted fields. The agent then acts for its registrant, with
// the default permissions and budget.
func TestARegistrationWithNulls(t *testing.T) {
	s := serve(t)
	status, agent := s.do("ann", http.MethodPost, "/v1/agents",
		`{"name": "a", "type": "supervised", "principal_id": null, "permissions": null, "budget": null}`)
	if status != http.StatusCreated || agent["principal_id"] != "ann" {
		t.Fatalf("%d, %v", status, agent)
	}
	status, budget := s.do("ann", http.MethodGet, "/v1/agents/"+agent["agent_id"].(string)+"/budget", "")
	if cost, _ := budget["cost"].(map[string]any); status != http.StatusOK || cost["max_daily_usd"] != 100.0 {
		t.Errorf("%d, %v", status, budget)
	}
	for field, body := range map[string]string{
		"name": `{"name": null, "type": "supervised"}`, "type": `{"name": "a", "type": null}`,
		"principal_id": `{"name": "a", "type": "supervised", "principal_id": " "}`,
	} {
		if status, answer := s.do("ann", http.MethodPost, "/v1/agents",
			body); status != http.StatusUnprocessableEntity || !strings.Contains(fmt.Sprint(answer), field) {
			t.Errorf("%s: %d, %v", body, status, answer)
		}
	}
}

// Issue 24: an agent is changed by its owner, never by itself or by others. A token with a type in
// its scope can neither register, nor change, nor get the token of an agent that is trusted further.
func TestWhoMayChangeWhat(t *testing.T) {
	s := serve(t)
	own, other := s.register("ann", "own"), s.register("bob", "other")
	trusted := strings.Replace(registration, "supervised", "trusted", 1)
	status, made := s.do("ann", "POST", "/v1/agents", trusted)
	if status != http.StatusCreated {
		t.Fatal(status, made)
	}
	high := made["agent_id"].(string)
	for _, tc := range []struct {
		as, method, path, body string
		want                   int
		names                  string // in the message
	}{
		{"own", "PATCH", own, `{"type": "trusted"}`, 403, "scope"},
		{"bob", "PATCH", own, `{"name": "mine"}`, 404, ""},
		{"runner", "PATCH", own, `{"name": "mine"}`, 403, "scope"},
		{"ann", "PATCH", own, `{"type": "autonomous", "name": null}`, 200, ""},
		{"admin", "PATCH", other, `{"budget": {"max_daily_cost_usd": 1}}`, 200, ""},
		{"ann", "PATCH", own, `{"Type": "trusted"}`, 422, "Type"},
		{"ann", "PATCH", own, `{"type": "trusted", "type": "trusted"}`, 422, "type"},
		{"ann", "PATCH", own, `{"type": "root"}`, 422, "type"},
		{"ann", "PATCH", own, `{"budget": {"max_requests_per_hour": -1}}`, 422, "max_requests_per_hour"},
		{"ann", "PATCH", own, `{"expires": "soon"}`, 422, "expires"},
		{"ann", "PATCH", own, `[]`, 422, ""},
		{"small", "PATCH", own, `{"type": "trusted"}`, 403, "type"},
		{"small", "PATCH", own, `{"name": "small"}`, 403, "type"}, // it is autonomous now
		{"small", "PATCH", high, `{"type": "untrusted"}`, 403, "type"},
		{"small", "POST", high + "/token", ``, 403, "type"},
		{"small", "POST", "", trusted, 403, "type"},
		{"small", "POST", "", strings.Replace(registration, "supervised", "untrusted", 1), 201, ""},
		{"ann", "PATCH", own, `{"type": "supervised"}`, 200, ""},
		{"small", "PATCH", own, `{"name": "small"}`, 200, ""},
		{"ann", "POST", own + "/status", `{"status": "killed"}`, 200, ""},
		{"ann", "PATCH", own, `{"name": "x"}`, 409, "register"},
	} {
		path := strings.TrimSuffix("/v1/agents/"+tc.path, "/")
		status, answer := s.do(tc.as, tc.method, path, tc.body)
		if status != tc.want || !strings.Contains(fmt.Sprint(answer), tc.names) {
			t.Errorf("%s %s %s %s: %d %v, want %d and %q", tc.as, tc.method, path, tc.body, status, answer, tc.want,
				tc.names)
		}
	}
}

// The parameters that the file describes are those that the routes accept.
func TestTheFileDescribesEveryParameter(t *testing.T) {
	s := serve(t)
	for path, item := range s.spec["paths"].(map[string]any) {
		described, ok := item.(map[string]any)["get"].(map[string]any)
		if !ok || path == "/v1/openapi.json" {
			continue
		}
		want := []string{}
		for _, parameter := range anyList(described["parameters"]) {
			if of := parameter.(map[string]any); of["in"] == "query" {
				want = append(want, of["name"].(string))
			}
		}
		status, body := s.do("ann", "GET", regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x")+"?none=1", "")
		_, list, _ := strings.Cut(fmt.Sprint(body["error"].(map[string]any)["message"]), "; write ")
		got := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(got)
		slices.Sort(want)
		if status != http.StatusUnprocessableEntity || !slices.Equal(got, want) {
			t.Errorf("%s: %d %v, the file describes %q", path, status, body, want)
		}
	}
}

func anyList(v any) []any {
	list, _ := v.([]any)
	return list
}
