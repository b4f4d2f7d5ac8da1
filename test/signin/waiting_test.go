package signin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// consent opens the start page of a sign-in in one browser and signs the first user in at the provider. It
// returns the last page.
func consent(start string) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	browser := &http.Client{Jar: jar}
	read := func(response *http.Response, err error) (string, *url.URL, error) {
		if err != nil {
			return "", nil, err
		}
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		return string(page), response.Request.URL, err
	}
	page, at, err := read(browser.Get(start))
	if err != nil {
		return "", err
	}
	found := requestID.FindStringSubmatch(page)
	if found == nil {
		return "", fmt.Errorf("%s shows no form: %s", at, page)
	}
	page, _, err = read(browser.PostForm(at.Scheme+"://"+at.Host+"/login/username",
		url.Values{"id": {found[1]}, "username": {firstUser}, "password": {"verysecure"}}))
	return page, err
}

// startPage matches the page at which a sign-in begins.
var startPage = regexp.MustCompile(`http://127\.0\.0\.1:\d+/start/\S+`)

// A run whose server was never signed in to, and a call whose sign-in has ended, wait while the person signs in through
// the host, and go on. If the person does not want to, they fail with the command, and the run does not ask again.
func TestACallWaitsForTheSignIn(t *testing.T) {
	testenv.Sandbox(t)
	hosts := map[string]struct {
		version string
		forms   mcp.ElicitationCapabilities
		answer  func(*mcp.ElicitParams) *mcp.ElicitResult // nil: the person signs in
	}{
		"2025-11-25, opens pages": {"2025-11-25", mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}, nil},
		"2026-07-28, opens pages": {"2026-07-28", mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}, nil},
		"2025-11-25, shows forms": {"2025-11-25", mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}}, nil},
		"2026-07-28, declines": {"2026-07-28", mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			func(*mcp.ElicitParams) *mcp.ElicitResult { return &mcp.ElicitResult{Action: "decline"} }},
	}
	for name, c := range hosts {
		for _, ended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ended %t", name, ended), func(t *testing.T) {
				provider := startProvider(t)
				program := newAirlock(t, startNotes(t, provider))
				if ended {
					program.login(t, follows)
					provider.again(t) // no sign-in is good any more
				}
				var asked atomic.Int32
				options := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{Elicitation: &c.forms},
					ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						asked.Add(1)
						if c.answer != nil {
							return c.answer(r.Params), nil
						}
						if c.forms.URL != nil && (r.Params.Mode != "url" || r.Params.URL == "") ||
							!strings.Contains(r.Params.Message, provider.Issuer) {
							t.Errorf("got the question %+v, want a page and the site to which it leads", r.Params)
						}
						page, err := consent(startPage.FindString(r.Params.URL + " " + r.Params.Message))
						if err != nil || !strings.Contains(page, "Airlock has the answer") {
							t.Errorf("the browser ends at %s, %v", page, err)
						}
						if c.forms.URL != nil {
							return &mcp.ElicitResult{Action: "accept"}, nil
						}
						return &mcp.ElicitResult{Action: "accept",
							Content: map[string]any{"decision": "yes: I agree, or have done it"}}, nil
					}}
				client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, options)
				host, err := client.Connect(t.Context(),
					&mcp.CommandTransport{Command: program.command(context.Background(), "mcp")},
					&mcp.ClientSessionOptions{ProtocolVersion: c.version})
				if err != nil {
					t.Fatalf("%v\n%s", err, program.said)
				}
				defer host.Close()
				if c.answer != nil {
					wantsSignIn(t, host)
				} else if got, raw := run(t, host); !got.OK || len(got.Data) != 2 || got.Data[0] != "id1" {
					t.Errorf("got %s, want the user of the sign-in", raw)
				}
				if asked.Load() != 1 {
					t.Errorf("asked %d times, want once", asked.Load())
				}
			})
		}
	}
}
