package signin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/test/browser"
)

// laptop is a browser that is signed in to the console of a daemon elsewhere.
type laptop struct {
	*testing.T
	*http.Client
}

func (a *airlock) newLaptop(t *testing.T, address, token string) *laptop {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &laptop{t, &http.Client{Jar: jar}}
	if _, page, _ := b.read(b.PostForm(address+"/sign-in", url.Values{"token": {token}})); strings.Contains(page,
		`name="token"`) {
		t.Fatalf("not signed in: %s", page)
	}
	return b
}

func (b *laptop) read(response *http.Response, err error) (status int, page string, at *url.URL) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return response.StatusCode, string(text), response.Request.URL
}

// button matches the link of a start page.
var button = regexp.MustCompile(`id="go" href="([^"]+)"`)

// A caller over HTTP, whose daemon and browser are on different machines, signs in with three clicks: to open the page,
// on it, and at the provider (issue 31). The run waits and goes on: first that of the user who runs the daemon,
// whose run needs the list of tools, then a nested call of another user. Somebody else who has the address of the page
// is refused, also as the first visitor.
func TestARemoteCallWaitsForTheSignIn(t *testing.T) {
	testenv.Sandbox(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			r := startRemote(t)
			program := r.airlock
			eve := program.newLaptop(t, r.address, program.token(t, "eve"))
			for _, c := range []struct{ principal, code string }{{setup.Principal(), whoami}, {"ann", whoamiTwice}} {
				var asked atomic.Int32
				host := r.host(t, c.principal, version, eve, &asked)
				if got, raw := runProgram(t, host, c.code); !got.OK || len(got.Data) != 2 || got.Data[0] != "id1" {
					t.Errorf("%s: got %s, want the user of the sign-in\n%s", c.principal, raw, program.said)
				}
				if asked.Load() != 1 {
					t.Errorf("%s was asked %d times, want once", c.principal, asked.Load())
				}
			}
			if got, raw := run(t, program.caller(t, r.address, "eve")); got.OK {
				t.Errorf("a sign-in of others serves eve: %s", raw)
			}
		})
	}
}

// remote is a daemon on another machine than its users.
type remote struct {
	*airlock
	provider *provider
	address  string
}

func startRemote(t *testing.T) *remote {
	t.Helper()
	provider := startProvider(t, "-client", "airlock", "-redirect", "http://127.0.0.1/sign-ins/callback")
	listen := testenv.ReservedAddress(t)
	r := &remote{newAirlock(t, startNotes(t, provider)), provider, "http://" + listen}
	text, err := os.ReadFile(r.configuration)
	if err == nil {
		text = fmt.Appendf(text, "serve: {publicURL: %q}\n", r.address)
		err = os.WriteFile(r.configuration, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.serveAt(t, listen)
	return r
}

// Remote users sign in with Chromium, in three clicks: the host opens the page, and the person clicks on it and at the
// provider (issue 31). Each browser is signed in to the console.
func TestRemoteUsersSignInWithChromium(t *testing.T) {
	testenv.Sandbox(t)
	r := startRemote(t)
	for _, principal := range []string{setup.Principal(), "ann"} {
		token, asked := r.token(t, principal), 0
		b := browser.Open(t)
		b.Goto(t, r.address+"/")
		b.Fill(t, "Token", token)
		b.Click(t, "button", "Sign in")
		b.Sees(t, "Sign out")
		client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
				Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
			ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked++
				b.Goto(t, q.Params.URL)
				b.Click(t, "link", "Sign in at "+r.provider.Issuer)
				b.Fill(t, "Username:", firstUser)
				b.Fill(t, "Password:", "verysecure")
				b.Click(t, "button", "Login")
				b.Sees(t, "Airlock has the answer")
				return &mcp.ElicitResult{Action: "accept"}, nil
			}})
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.address + "/mcp",
			HTTPClient: testenv.Bearer(token)}, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, r.said)
		}
		got, raw := runProgram(t, session, whoami)
		if !got.OK || len(got.Data) != 2 || got.Data[0] != "id1" || asked != 1 {
			t.Errorf("%s was asked %d times, got %s, want the user of the sign-in\n%s", principal, asked, raw, r.said)
		}
		b.NoProblems(t, "/favicon.ico") // the provider has none
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}

// host connects a host of a principal, who signs in when asked. thief has the address of the page first.
func (r *remote) host(t *testing.T, principal, version string, thief *laptop, asked *atomic.Int32) *mcp.ClientSession {
	t.Helper()
	token := r.token(t, principal)
	own := r.newLaptop(t, r.address, token)
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked.Add(1)
			if q.Params.Mode != "url" || !strings.HasPrefix(q.Params.URL, r.address+"/sign-ins/") ||
				!strings.Contains(q.Params.Message, r.provider.Issuer) {
				t.Errorf("got the question %+v, want a page of the daemon and the site", q.Params)
			}
			for _, path := range []string{"/sign-ins/", "/sign-ins/go/"} {
				at := strings.Replace(q.Params.URL, "/sign-ins/", path, 1)
				if status, page, _ := thief.read(thief.Get(at)); status != http.StatusNotFound {
					t.Errorf("another user at the page: got HTTP %d: %s", status, page)
				}
			}
			if page := r.consent(own, q.Params.URL); !strings.Contains(page, "Airlock has the answer") {
				t.Errorf("the browser ends at %s", page)
			}
			return &mcp.ElicitResult{Action: "accept"}, nil
		}})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r.address + "/mcp",
		HTTPClient: testenv.Bearer(token)}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%v\n%s", err, r.said)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// consent goes from the start page to the end, and returns the last page.
func (r *remote) consent(browser *laptop, start string) string {
	_, page, _ := browser.read(browser.Get(start))
	found := button.FindStringSubmatch(page)
	if found == nil || !strings.Contains(page, r.provider.Issuer) {
		return page
	}
	_, page, at := browser.read(browser.Get(found[1]))
	form := requestID.FindStringSubmatch(page)
	if form == nil {
		return page
	}
	_, page, _ = browser.read(browser.PostForm(at.Scheme+"://"+at.Host+"/login/username",
		url.Values{"id": {form[1]}, "username": {firstUser}, "password": {"verysecure"}}))
	return page
}
