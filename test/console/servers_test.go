package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/test/browser"
)

// startServer serves MCP on the loopback interface and returns its URL. Where an issuer
// is given, it answers those alone for whom the issuer vouches (RFC 9728).
func startServer(t *testing.T, server *mcp.Server, issuer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin := "http://" + listener.Addr().String()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	mux := http.NewServeMux()
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	mux.HandleFunc("GET "+metadata, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"resource": origin + "/mcp", "authorization_servers": []string{issuer},
			"scopes_supported": []string{"openid"}})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if issuer != "" && !isVouchedFor(r, issuer) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+origin+metadata+`"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	t.Cleanup(func() { web.Close(); <-served })
	return origin + "/mcp"
}

// isVouchedFor asks the issuer about the token of a request.
func isVouchedFor(r *http.Request, issuer string) bool {
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, issuer+"/userinfo", nil)
	if err != nil {
		return false
	}
	ask.Header.Set("Authorization", r.Header.Get("Authorization"))
	response, err := http.DefaultClient.Do(ask)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// A person signs in to a server through the button, for their own calls and nobody
// else's, and out again.
func TestSignInToAServer(t *testing.T) {
	issuer := testenv.StartOpenIDProvider(t).Issuer
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami", Description: "Says who calls."},
		func(_ context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you"}}}, nil, nil
		})
	a := startAirlock(t, "mcpServers: {notes: {url: "+startServer(t, server, issuer)+
		"}}\nservers: {notes: {oauth: {clientId: airlock}}}\n")
	b := browser.Open(t)
	signIn(t, b, a, a.token(t, "ann", "run"))
	b.Goto(t, a.address+"/servers")
	b.Sees(t, "not signed in")
	b.Click(t, "button", "Sign in to notes")
	link := "Sign in at " + issuer
	b.Sees(t, link)

	b.Do(t, "popup", map[string]any{"role": "link", "name": link})
	b.Fill(t, "Username:", "test-user@127.0.0.1")
	b.Fill(t, "Password:", "verysecure")
	b.Click(t, "button", "Login")
	b.Sees(t, "Airlock has the answer. You can close this window.")
	var address string
	b.Evaluate(t, "location.href", &address)
	b.Do(t, "back", nil)
	b.Sees(t, "You are signed in to notes as id1: 1 tool.")
	b.NoProblems(t, "favicon.ico") // of the other pages

	b.Goto(t, a.address+"/servers")
	b.Sees(t, "signed in", "at "+issuer)
	var page string
	b.Evaluate(t, "document.documentElement.outerHTML", &page)
	if strings.Contains(page, "eyJ") { // how a JWT begins
		t.Errorf("the page shows a token:\n%s", page)
	}
	other := browser.Open(t)
	signIn(t, other, a, a.token(t, "bob", "admin"))
	other.Goto(t, a.address+"/servers")
	other.Sees(t, "not signed in")
	if status := other.Goto(t, a.address+"/servers/notes/sign-in"); status != 200 {
		t.Errorf("got %d", status)
	}
	other.Do(t, "reaches", map[string]any{"path": "/servers"}) // bob has no flow

	b.Click(t, "button", "Sign out of notes")
	b.Sees(t, "You are signed out of notes.", "not signed in")
}

// Issue 27: servers that wait are shown: those of a changed file that nobody has confirmed, and new ones, whose tools
// are accepted together.
func TestServersThatWait(t *testing.T) {
	a := startAirlock(t, "mcpServers: {}\n")
	b := browser.Open(t)
	token := a.token(t, "ann", "admin")
	everywhere := func(path, state string) {
		t.Helper()
		for _, view := range views {
			b.Begin(t, view)
			signIn(t, b, a, token)
			b.Goto(t, a.address+path)
			fits(t, b, path, fmt.Sprintf("%d px, dark %t", view.Width, view.Dark), view.Width)
			pictured(t, b, path+"-"+state, view.Width, view.Dark)
		}
	}
	signIn(t, b, a, token)
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	addTool(server, "list_orders", "Lists the orders.", "none")
	addTool(server, "read_order", "Reads one order.", "none")
	url := startServer(t, server, "")
	text, err := os.ReadFile(a.configuration)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), "mcpServers: {}", "mcpServers:\n  other: {url: "+url+"}", 1)
	if err := os.WriteFile(a.configuration, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Goto(t, a.address+"/servers")
	b.Sees(t, "The configuration file is not in force as it is now", "other", "waiting")
	everywhere("/servers", "waiting")
	b.Click(t, "link", "Show the difference")
	b.Sees(t, "airlock trust")
	everywhere("/configuration", "waiting")
	b.Goto(t, a.address+"/servers")
	a.prints(t, "trust", "--yes")
	b.Unsees(t, "The configuration file is not in force as it is now")
	b.Sees(t, "connected")

	a.prints(t, "servers", "add", "shop", "--url", url)
	b.Click(t, "link", "3 withheld definitions of shop") // by itself; one is of the server
	b.Sees(t, "A tool of a new server that nobody has seen yet", "list_orders", "read_order")
	everywhere("/tools/changes", "withheld")
	b.Goto(t, a.address+"/servers")
	b.Sees(t, "waits until its tools are accepted")
	everywhere("/servers", "withheld")
	b.Goto(t, a.address+"/tools/changes")
	b.Click(t, "button", "Accept all 3 definitions of shop")
	b.Sees(t, "The tools of shop can be used, with the definitions that you were shown.", "No tool is withheld.")
	b.Goto(t, a.address+"/tools?server=shop")
	b.Sees(t, "Tools 1 to 2 of 2")
	log := a.prints(t, "audit", "tail", "-n", "50", "--json")
	if got := strings.Count(log, "a changed definition is accepted"); got != 3 {
		t.Errorf("the log has %d accepted definitions, want 3:\n%s", got, log)
	}
}

// A sign-in whose browser is on another machine ends with an address that is pasted.
func TestPasteTheAddress(t *testing.T) {
	issuer := testenv.StartOpenIDProvider(t).Issuer
	a := startAirlock(t, "mcpServers: {notes: {url: "+
		startServer(t, mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil), issuer)+
		"}}\nservers: {notes: {oauth: {clientId: airlock}}}\n")
	b := browser.Open(t)
	signIn(t, b, a, a.token(t, "ann", "run"))
	b.Goto(t, a.address+"/servers")
	b.Click(t, "button", "Sign in to notes")
	b.Sees(t, "Sign in at "+issuer)
	b.Do(t, "taps", map[string]any{"selector": "summary"})
	b.Fill(t, "Address of the page", "http://127.0.0.1/callback?code=stolen&state=guessed")
	b.Click(t, "button", "Send")
	b.Sees(t, "This is not the address of the page at the end of this sign-in.")
}
