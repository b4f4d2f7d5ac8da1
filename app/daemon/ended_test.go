package daemon

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/auth"
)

// A request whose caller is not accepted any more is answered with an error, in both revisions. Its stream ended
// without one (issue 27). The calls of the run also prove that a connection to a server of the older revision can be
// opened within a request of the newer one.
func TestRequestsOfAnEndedCallerAreAnswered(t *testing.T) {
	for _, how := range []string{"revoked", "there is no profile"} {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(how+", "+revision, func(t *testing.T) {
				g := newGate(t)
				s := serve(t, g.keys+"profiles: {small: {servers: [gate]}}\n")
				s.untilReady()
				made, value, err := s.daemon.known.Tokens().Create(t.Context(),
					auth.Grant{Name: "host", Scopes: []string{auth.ScopeRun}, Profile: "small"})
				if err != nil {
					t.Fatal(err)
				}
				c := rawClient{served: s, token: value.Reveal(), revision: revision}
				c.initialize()
				ended := make(chan error, 1)
				go func() {
					<-g.arrived
					if how == "revoked" {
						ended <- s.daemon.known.RevokeToken(t.Context(), made.ID, "ann")
						return
					}
					err := os.WriteFile(s.daemon.opts.Config.File, []byte(g.keys), 0o600)
					s.daemon.opts.System.Reload(t.Context())
					ended <- err
				}()
				answer := c.send("tools/call", "run_code",
					fmt.Sprintf(`"name":"run_code","arguments":{"language":"python","code":%q}`, g.code))
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				if want := `"error":{"code":-32600,"message":"the caller's token was revoked, has expired, or lost ` +
					`rights: ` + how; !strings.Contains(answer, want) {
					t.Errorf("got %s, want %s", answer, want)
				}
			})
		}
	}
}

// rawClient sends messages as they are, and reads whole answers.
type rawClient struct {
	*served
	token, revision, session string
}

// initialize begins a session in the revision that has them.
func (c *rawClient) initialize() {
	if c.revision == "2025-11-25" {
		c.send("initialize", "",
			`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}`)
	}
}

// send sends a request and returns the body of the answer.
func (c *rawClient) send(method, name, params string) string {
	c.t.Helper()
	if c.revision != "2025-11-25" {
		params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + c.revision + `",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/mcp",
		strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)))
	if err != nil {
		c.t.Fatal(err)
	}
	for header, value := range map[string]string{"Authorization": "Bearer " + c.token,
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Session-Id": c.session, "Mcp-Protocol-Version": c.revision, "Mcp-Method": method, "Mcp-Name": name} {
		if value != "" {
			r.Header.Set(header, value)
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return string(body)
}
