package doors

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/server"
)

// echoed are requests of MCP with a secret in place of %s: the method and its params.
var echoed = map[string][2]string{
	"a method":            {"%s", ""},
	"a part of a method":  {"tools/%s", ""},
	"a tool":              {"tools/call", `"name":"%s","arguments":{}`},
	"a server":            {"tools/call", `"name":"%s/x","arguments":{}`},
	"the name of a value": {"tools/call", `"name":"run_code","arguments":{"%s":1}`},
	"a value":             {"tools/call", `"name":"run_code","arguments":{"language":"%s","code":"x"}`},
	"a value of no type":  {"tools/call", `"name":"get_run","arguments":["%s"]`},
	"a run":               {"tools/call", `"name":"get_run","arguments":{"run_id":"%s"}`},
	"a prompt":            {"prompts/get", `"name":"%s"`},
	"a resource":          {"resources/read", `"uri":"x://%s"`},
	"a subscription":      {"resources/subscribe", `"uri":"airlock://runs/%s"`},
	"a level":             {"logging/setLevel", `"level":"%s"`},
	"a reference":         {"completion/complete", `"ref":{"type":"%s"},"argument":{"name":"a","value":"b"}`},
	"a cursor":            {"tools/list", `"cursor":"%s"`},
	"a task":              {"tasks/get", `"taskId":"%s"`},
	"a member":            {"server/discover", `"%s":1`},
	"a notification":      {"subscriptions/listen", `"notifications":{"%s":true}`},
	"a revision": {"initialize",
		`"protocolVersion":"%s","capabilities":{},"clientInfo":{"name":"n","version":"1"}`},
}

// echoedPaths are paths with a secret in place of %s.
var echoedPaths = []string{"/%s", "/mcp/%s", "/v1/%s", "/v1/agents/%s", "/v1/agents?type=%s", "/v1/agents?%s=1",
	"/v1/approvals/%s", "/v1/grants/%s", "/.well-known/%s", "/.well-known/oauth-protected-resource/%s",
	"/.well-known/oauth-authorization-server/%s", "/runs/%s", "/questions/%s", "/servers/%s", "/sign-in?token=%s",
	"/sign-in/%s", "/files/%s/x", "/metrics?%s", "/static/%s", "/v1/agents/%%00%s", "/v1/agents?limit=%s"}

// Issue 23: no error shows a secret that its request had: in a method, a name, a URI, a member, a header or a path.
func TestErrorsDoNotRepeatSecrets(t *testing.T) {
	d := start(t)
	const secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(what, method, path, body string, header http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header.Clone()
		r.Header.Set("Authorization", "Bearer "+d.tokens["owner"])
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		shown := string(answer) + fmt.Sprint(response.Header)
		if response.StatusCode/100 != 3 && strings.Contains(shown, secret) { // a redirect names a path of the client
			t.Errorf("%s, %s %s: got %d %s", what, method, path, response.StatusCode, shown)
		}
	}
	ofJSON := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for _, face := range []string{"/mcp", "/kernel/mcp", "/gateway/mcp"} {
		for what, request := range echoed {
			for _, revision := range []string{"2025-11-25", server.Stateless} {
				meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + revision +
					`","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
					`"io.modelcontextprotocol/clientCapabilities":{}}`
				params := strings.TrimPrefix(request[1]+","+meta, ",")
				body := strings.ReplaceAll(`{"jsonrpc":"2.0","id":1,"method":"`+request[0]+`","params":{`+params+"}}",
					"%s", secret)
				header := ofJSON.Clone()
				header.Set("Mcp-Protocol-Version", revision)
				send(what, http.MethodPost, face, body, header)
				header.Set("Mcp-Method", strings.ReplaceAll(request[0], "%s", secret))
				header.Set("Mcp-Name", secret)
				send(what+" with headers", http.MethodPost, face, body, header)
			}
		}
		for _, body := range []string{"%s", `{"jsonrpc":"%s","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","%s":`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"%s"}`, `["%s"]`} {
			send(body, http.MethodPost, face, strings.ReplaceAll(body, "%s", secret), ofJSON)
		}
		for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Content-Type", "Accept",
			"Origin", "Last-Event-Id"} {
			header := ofJSON.Clone()
			header.Set(name, secret)
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, "X-" + secret} {
				send("the header "+name, method, face, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header)
			}
		}
	}
	for _, path := range echoedPaths {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
			send("a path", method, fmt.Sprintf(path, secret), `{"name":"x","`+secret+`":1}`, ofJSON)
		}
	}
	for _, body := range []string{`{"name":"x","type":"%s"}`, `{"%s":1}`, `{"name":["%s"]}`, "%s",
		`{"name":"x","principal_id":"%s","type":"supervised"}`} {
		for _, path := range []string{"/v1/agents", "/v1/approvals", "/v1/grants"} {
			send(body, http.MethodPost, path, strings.ReplaceAll(body, "%s", secret), ofJSON)
		}
	}
}
