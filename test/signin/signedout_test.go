package signin

import (
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

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

// Issue 23: a token that a person had made in the console was in force after the person had signed out, and the access
// tokens and sign-ins of a person whose account was disabled could not be ended.
func TestSigningOutEndsWhatAPersonBegan(t *testing.T) {
	s := startPeople(t, `groups: {"test-user@zitadel.ch": {rights: [admin, run]}}`)
	signedIn := func() (p *person, token string) {
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
	one, ones := signedIn()
	other, others := signedIn()
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
