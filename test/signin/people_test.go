package signin

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// person is a browser that signs in to the console.
type person struct {
	*testing.T
	*http.Client
	s       *service
	visited []*http.Request // redirects, in order
	stop    bool            // at the console's callback
}

func newPerson(t *testing.T, s *service) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{T: t, s: s}
	p.Client = &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		p.visited = append(p.visited, r)
		if p.stop && strings.HasPrefix(r.URL.String(), s.url+"/sign-in/callback") {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return p
}

// open returns the answer to a GET of the console, after all redirects.
func (p *person) open(address string) (status int, path, body string, header http.Header) {
	p.Helper()
	response, err := p.Get(address)
	if err != nil {
		p.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.Fatal(err)
	}
	return response.StatusCode, response.Request.URL.Path, string(text), response.Header
}

// signIn begins at the console and gives the provider the name of a user. It returns the page at the end.
func (p *person) signIn(user string) (status int, body string, header http.Header) {
	p.Helper()
	status, path, page, _ := p.open(p.s.url + "/sign-in/openid?next=/questions")
	found := requestID.FindStringSubmatch(page)
	if found == nil {
		p.Fatalf("got %d at %s, want the form of the provider:\n%s", status, path, page)
	}
	response, err := p.PostForm(p.s.provider.Issuer+"/login/username", url.Values{"id": {found[1]}, "username": {user},
		"password": {"verysecure"}})
	if err != nil {
		p.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

// callback returns the last address that the provider redirected to.
func (p *person) callback() string {
	p.Helper()
	for i := len(p.visited) - 1; i >= 0; i-- {
		if strings.HasPrefix(p.visited[i].URL.String(), p.s.url+"/sign-in/callback") {
			return p.visited[i].URL.String()
		}
	}
	p.Fatal("the provider did not redirect to the console")
	return ""
}

// isIn reports whether the browser is signed in.
func (p *person) isIn() bool {
	_, path, _, _ := p.open(p.s.url + "/questions")
	return path == "/questions"
}

// startPeople starts a service whose console people sign in to. The provider names the address of a user's mail, which
// is used as a group.
func startPeople(t *testing.T, more string, sections ...string) *service {
	t.Helper()
	p := startProvider(t, "-client", "console,other", "-redirect", "http://127.0.0.1/sign-in/callback")
	testenv.OwnHome(t, "python")
	return serve(t, p, `groupsClaim: email, signIn: {clientId: console, scopes: [email, profile], `+more+`}`,
		sections...)
}

// People sign in to the console at a real provider, and have the rights of their groups (issue 27, item 13).
func TestPeopleSignInToTheConsole(t *testing.T) {
	s := startPeople(t, `groups: {"test-user@zitadel.ch": {rights: [approve, run]}}`)
	ann := newPerson(t, s)
	if _, path, page, _ := ann.open(s.url + "/questions"); path != "/sign-in" ||
		!strings.Contains(page, `href="/sign-in/openid?next=`) {
		t.Fatalf("got %s, want the sign-in with a link to the provider:\n%s", path, page)
	}
	status, page, header := ann.signIn(firstUser)
	if status != http.StatusOK || header.Get("Refresh") != "0; url=/questions" || !ann.isIn() {
		t.Fatalf("got %d, %v, signed in %t:\n%s\n%s", status, header, ann.isIn(), page, s.said)
	}
	for _, cookie := range header.Values("Set-Cookie") {
		name, _, _ := strings.Cut(cookie, "=")
		if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=") ||
			name == "airlock-console" && !strings.Contains(cookie, "SameSite=Strict") {
			t.Errorf("got the cookie %s", cookie)
		}
	}
	if _, _, page, _ := ann.open(s.url + "/questions"); !strings.Contains(page, firstSubject) {
		t.Errorf("the page does not name the subject %s:\n%s", firstSubject, page)
	}
	if status, _, _, _ := ann.open(s.url + "/tokens"); status != http.StatusForbidden {
		t.Errorf("a page for administrators: got %d, want 403", status)
	}
	bob := newPerson(t, s)
	if status, page, _ := bob.signIn(secondUser); status != http.StatusForbidden || bob.isIn() ||
		!strings.Contains(page, "Your account may not do anything here") {
		t.Errorf("a person without a group: got %d, %s", status, page)
	}
	s.provider.Stop() // the keys are known, so people stay signed in
	if !ann.isIn() {
		t.Error("the person is signed out because the provider is away")
	}
}

// An answer counts in the browser that began the sign-in, once, and with its state (issue 27, item 13).
func TestForeignAnswersSignNobodyIn(t *testing.T) {
	s := startPeople(t, `everyone: {rights: [approve, run]}`)
	attacker := newPerson(t, s)
	attacker.stop = true
	attacker.signIn(firstUser)
	stolen := attacker.callback()
	for name, change := range map[string]func(url.Values){
		"without a state":   func(q url.Values) { q.Del("state") },
		"with two states":   func(q url.Values) { q.Add("state", "x") },
		"another state":     func(q url.Values) { q.Set("state", "x") },
		"without a code":    func(q url.Values) { q.Del("code") },
		"of another issuer": func(q url.Values) { q.Set("iss", "https://evil.example") },
		"an error":          func(q url.Values) { q.Set("error", "access_denied") },
	} {
		u, _ := url.Parse(stolen)
		query := u.Query()
		change(query)
		u.RawQuery = query.Encode()
		fresh := newPerson(t, s)
		fresh.Jar.SetCookies(u, attacker.Jar.Cookies(u))
		if status, _, _, header := fresh.open(u.String()); status != http.StatusForbidden || fresh.isIn() ||
			strings.Contains(strings.Join(header.Values("Set-Cookie"), ";"), "airlock-console=") {
			t.Errorf("%s: got %d, signed in %t", name, status, fresh.isIn())
		}
	}
	victim := newPerson(t, s)
	if status, _, _, _ := victim.open(stolen); status != http.StatusForbidden || victim.isIn() {
		t.Errorf("in a browser that has not begun: got %d, signed in %t", status, victim.isIn())
	}
	begun := newPerson(t, s) // has the cookie of another sign-in than the attacker's answer
	begun.open(s.url + "/sign-in/openid")
	if status, _, _, _ := begun.open(stolen); status != http.StatusForbidden || begun.isIn() {
		t.Errorf("in a browser that has begun another sign-in: got %d, signed in %t", status, begun.isIn())
	}
	forged := newPerson(t, s)
	u, _ := url.Parse(stolen)
	forged.Jar.SetCookies(u, []*http.Cookie{{Name: "airlock-console-openid", Value: "AAAA"}})
	if status, _, _, _ := forged.open(stolen); status != http.StatusForbidden || forged.isIn() {
		t.Errorf("with a forged cookie: got %d, signed in %t", status, forged.isIn())
	}
	attacker.stop = false
	if status, _, _, _ := attacker.open(stolen); status != http.StatusOK || !attacker.isIn() {
		t.Errorf("in the browser that began: got %d, signed in %t\n%s", status, attacker.isIn(), s.said)
	}
	if status, _, _, _ := attacker.open(stolen); status != http.StatusForbidden {
		t.Errorf("the same answer again: got %d, want 403", status)
	}
	if said := s.said.String(); strings.Contains(said, u.Query().Get("code")) {
		t.Error("the log has the code")
	}
}

// A session is new after the sign-in, whatever cookie the browser had, and another site cannot begin a sign-in
// (issue 27, item 13).
func TestSessionsAreNotFixed(t *testing.T) {
	s := startPeople(t, `everyone: {rights: [run, approve]}`)
	console, _ := url.Parse(s.url)
	ann := newPerson(t, s)
	planted := &http.Cookie{Name: "airlock-console", Value: strings.Repeat("a", 43)}
	ann.Jar.SetCookies(console, []*http.Cookie{planted})
	if status, page, _ := ann.signIn(firstUser); status != http.StatusOK {
		t.Fatalf("got %d: %s", status, page)
	}
	first := cookieOf(ann, console)
	if first == planted.Value || first == "" {
		t.Errorf("the session has the cookie %q that was there before", first)
	}
	if status, _, _ := ann.signIn(firstUser); status != http.StatusOK {
		t.Fatal("the second sign-in failed")
	}
	other := newPerson(t, s)
	other.Jar.SetCookies(console, []*http.Cookie{{Name: "airlock-console", Value: first}})
	if cookieOf(ann, console) == first || other.isIn() {
		t.Error("the session of before is still open after a new sign-in")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/sign-in/openid", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	response, err := ann.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden || len(response.Cookies()) > 0 {
		t.Errorf("begun by another site: got %d with %v", response.StatusCode, response.Cookies())
	}
}

func cookieOf(p *person, console *url.URL) string {
	for _, cookie := range p.Jar.Cookies(console) {
		if cookie.Name == "airlock-console" {
			return cookie.Value
		}
	}
	return ""
}
