package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/test/browser"
)

// request fetches a path like a script of the open page, and returns what the script can
// read of the answer.
const request = `(async () => {
	try {
		const response = await fetch(%q, {method: %q, mode: %q, headers: %s, body: %s});
		return response.type + " " + response.status;
	} catch (error) { return error.name; }
})()`

// A page of another site learns nothing and changes nothing, whether it asks as another
// origin or has its name resolve to this machine (DNS rebinding), and though it has a
// token.
func TestForeignPages(t *testing.T) {
	a := startAirlock(t, "mcpServers: {}\n")
	token := a.token(t, "ann", "admin")
	port := a.address[strings.LastIndex(a.address, ":"):]
	foreign := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<title>foreign</title>") }))
	defer foreign.Close()
	b := browser.Open(t, "rebound.example=127.0.0.1")

	call := `JSON.stringify({jsonrpc: "2.0", id: 1, method: "tools/list"})`
	bearing := fmt.Sprintf(
		`{"Authorization": "Bearer %s", "Content-Type": "application/json", "Accept": "application/json, `+
			`text/event-stream"}`, token)
	tests := []struct{ name, page, address, method, mode, headers, body, want string }{
		{"another origin calls a tool", foreign.URL, a.address + "/mcp", "POST", "cors", bearing, call, "TypeError"},
		{"another origin reads the API", foreign.URL, a.address + "/v1/agents", "GET", "cors", bearing, "undefined",
			"TypeError"},
		{"a name that resolves here calls a tool", "http://rebound.example" + port + "/healthz", "/mcp", "POST",
			"same-origin", bearing, call, "basic 403"},
		{"a name that resolves here reads the API", "http://rebound.example" + port + "/healthz", "/v1/agents", "GET",
			"same-origin", bearing, "undefined", "basic 403"},
		{"the same page from the right address reads the API", a.address + "/healthz", "/v1/agents", "GET",
			"same-origin", bearing, "undefined", "basic 200"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b.Goto(t, test.page)
			var got string
			b.Evaluate(t, fmt.Sprintf(request, test.address, test.method, test.mode, test.headers, test.body), &got)
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			b.NoProblems(t, "CORS policy", "403 (Forbidden)", "net::ERR_FAILED", "/favicon.ico")
		})
	}
}
