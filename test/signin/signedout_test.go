package signin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

var (
	csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)
	madeToken = regexp.MustCompile(`airlock_[A-Za-z0-9_-]{20,}`)
)

// post sends a form of the console and returns the page at the end.
func (p *person) post(path string, form url.Values) string {
	p.Helper()
	_, _, page, _ := p.open(p.s.url + "/health")
	found := csrfField.FindStringSubmatch(page)
	if found == nil {
		p.Fatalf("no form in %s", page)
	}
	form.Set("csrf", found[1])
	response, err := p.PostForm(p.s.url+path, form)
	if err != nil {
		p.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.Fatal(err)
	}
	return string(text)
}

// administrators gives rights to the first user.
const administrators = `groups: {"test-user@zitadel.ch": {rights: [admin, run]}}`

// signedIn signs the first user in, and makes a token for a host.
func (s *service) signedIn(t *testing.T) (p *person, token string) {
	t.Helper()
	p = newPerson(t, s)
	if status, page, _ := p.signIn(firstUser); status != http.StatusOK {
		t.Fatalf("got %d: %s", status, page)
	}
	page := p.post("/tokens", url.Values{"name": {"host"}, "scope": {"run"}, "life": {"30 days"}})
	if token = madeToken.FindString(page); token == "" {
		t.Fatalf("no token in %s", page)
	}
	if got := s.ask(t, "/mcp", token); got.status == http.StatusUnauthorized {
		t.Fatalf("the token: got %+v", got)
	}
	return p, token
}

// Issue 23: a run of a person that waits without a sandbox ends when the person signs out, and makes no call.
func TestSigningOutEndsSuspendedRuns(t *testing.T) {
	var made atomic.Int32
	alpha := mcp.NewServer(&mcp.Implementation{Name: "alpha", Version: "1"}, nil)
	mcp.AddTool(alpha, &mcp.Tool{Name: "change", Description: "Changes something."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			made.Add(1)
			return &mcp.CallToolResult{}, nil, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return alpha },
		&mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(web.Close)
	rules := filepath.Join(t.TempDir(), "rules.cedar")
	if err := os.WriteFile(rules, []byte(`permit(principal, action, resource) when { resource.risk == "read" };
@approve("owner") permit(principal, action == Action::"alpha/change", resource);`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startPeople(t, administrators, fmt.Sprintf("mcpServers: {alpha: {url: %q}}\npolicies: [%q]\n"+
		"runs: {suspendAfter: 100ms}", web.URL, rules))
	p, token := s.signedIn(t)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		h := s.face(t, token, "/mcp", revision)
		calls("run_code", `{"language": "python", "background": true, "code": "from servers.alpha import change\n`+
			`await change({})%s"}`)(h, "")
	}
	suspended := store.Suspended(os.Getenv("AIRLOCK_HOME"))
	settles := func(runs int) {
		t.Helper()
		limited, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for limited.Err() == nil {
			kept, err := filepath.Glob(filepath.Join(suspended, "*.run"))
			if err != nil {
				t.Fatal(err)
			}
			if len(kept) == runs {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatalf("there are not %d suspended runs\n%s", runs, s.said)
	}
	settles(2)
	p.post("/sign-out", url.Values{})
	settles(0)
	s.until(t, token, http.StatusUnauthorized)
	if n := made.Load(); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// Issue 23: a token that a person had made in the console was in force after the person had signed out, and the access
// tokens and sign-ins of a person whose account was disabled could not be ended.
func TestSigningOutEndsWhatAPersonBegan(t *testing.T) {
	s := startPeople(t, administrators)
	one, ones := s.signedIn(t)
	other, others := s.signedIn(t)
	one.post("/sign-out", url.Values{})
	s.until(t, ones, http.StatusUnauthorized)
	if one.isIn() || !other.isIn() {
		t.Errorf("signed in: %t, want false; the other browser of the person: %t, want true", one.isIn(), other.isIn())
	}
	if got := s.ask(t, "/mcp", others); got.status == http.StatusUnauthorized {
		t.Errorf("the token of the other browser: got %+v", got)
	}
	revoke := func(name string) error {
		program := filepath.Join(testenv.RepoRoot(t), "bin", "airlock")
		return exec.CommandContext(t.Context(), program, "tokens", "revoke", name, "--config", s.file).Run()
	}
	if err := revoke("https://other.example#" + firstSubject); err == nil {
		t.Error("a person of another issuer: got no error")
	}
	if err := revoke(s.provider.Issuer + "#" + firstSubject); err != nil {
		t.Fatal(err)
	}
	s.until(t, others, http.StatusUnauthorized)
	if other.isIn() {
		t.Error("the browser of the person who was signed out is signed in")
	}
}
