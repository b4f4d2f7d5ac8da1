package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/console"
	"github.com/airlock-mcp/airlock/internal/caller"
)

func TestSignInAndOut(t *testing.T) {
	s := serve(t, nil)
	b := s.browser()
	if got := b.get("/health"); got.status != http.StatusSeeOther ||
		got.header.Get("Location") != "/sign-in?next=%2Fhealth" {
		t.Errorf("without a session: got %d to %q, want the sign-in", got.status, got.header.Get("Location"))
	}
	_, token := s.token("ann", auth.ScopeRun)
	got := b.send(http.MethodPost, "/sign-in", url.Values{"token": {" " + token + "\n"}, "next": {"/health"}}, nil)
	if got.status != http.StatusSeeOther || got.header.Get("Location") != "/health" {
		t.Fatalf("signing in: got %d to %q", got.status, got.header.Get("Location"))
	}
	cookie := got.header.Get("Set-Cookie")
	for _, want := range []string{"airlock-console=", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q, want %s", cookie, want)
		}
	}
	if strings.Contains(cookie, token) || strings.Contains(cookie, "Domain") {
		t.Errorf("the cookie is %q", cookie)
	}
	page := b.get("/health")
	if page.status != http.StatusOK || !strings.Contains(page.body, "ann") || strings.Contains(page.body, token) {
		t.Errorf("signed in: got %d %s", page.status, page.body)
	}
	if got := b.post("/sign-out", url.Values{"csrf": {"another"}}); got.status != http.StatusForbidden {
		t.Errorf("signing out with another token: got %d, want 403", got.status)
	}
	before := b.client.Jar.Cookies(mustParse(t, s.url))
	if got := b.post("/sign-out", nil); got.status != http.StatusSeeOther {
		t.Errorf("signing out: got %d %s", got.status, got.body)
	}
	b.client.Jar.SetCookies(mustParse(t, s.url), before)
	if got := b.get("/health"); got.status != http.StatusSeeOther {
		t.Errorf("with the cookie of before: got %d, want that the session is over", got.status)
	}
}

func mustParse(t *testing.T, text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestWhoMayNotSignIn(t *testing.T) {
	s := serve(t, nil)
	revokedID, revoked := s.token("ann", auth.ScopeAdmin)
	if err := s.tokens.Revoke(t.Context(), revokedID); err != nil {
		t.Fatal(err)
	}
	_, agent, err := s.agents.Register(t.Context(),
		agents.Registration{Name: "a", PrincipalID: "ann", Type: agents.Autonomous}, "test")
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"nothing": "", "nonsense": "x", "revoked": revoked,
		"an agent's": agent.Reveal(), "a JWT": "e30.e30.e30", "huge": strings.Repeat("x", 32<<10)} {
		got := s.browser().send(http.MethodPost, "/sign-in", url.Values{"token": {token}}, nil)
		if got.status != http.StatusForbidden || got.header.Get("Set-Cookie") != "" || token != "" &&
			strings.Contains(got.body, `value="`+token) {
			t.Errorf("%s: got %d, cookie %q, want 403", name, got.status, got.header.Get("Set-Cookie"))
		}
	}
}

// After too many failed sign-ins, a valid token is also refused for a while.
func TestFailedSignInsAreLimited(t *testing.T) {
	s := serve(t, nil)
	b := s.browser()
	statuses := map[int]int{}
	for range 15 {
		statuses[b.send(http.MethodPost, "/sign-in", url.Values{"token": {"guess"}}, nil).status]++
	}
	if fmt.Sprint(statuses) != "map[403:10 429:5]" {
		t.Errorf("got %v, want ten guesses and no more", statuses)
	}
	_, token := s.token("ann", auth.ScopeRun)
	if got := b.send(http.MethodPost, "/sign-in", url.Values{"token": {token}},
		nil); got.status != http.StatusSeeOther {
		t.Errorf("a good token: got %d, want a session: the failures of others do not count (issue 23)", got.status)
	}
	s.clock.Advance(time.Minute)
	if got := b.send(http.MethodPost, "/sign-in", url.Values{"token": {"guess"}},
		nil); got.status != http.StatusForbidden {
		t.Errorf("a guess a minute later: got %d, want 403", got.status)
	}
}

func TestASessionEndsWithItsTokenAndWithTime(t *testing.T) {
	s := serve(t, nil)
	id, token := s.token("ann", auth.ScopeRun)
	b := s.browser()
	b.send(http.MethodPost, "/sign-in", url.Values{"token": {token}}, nil)
	if err := s.tokens.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := b.get("/health"); got.status != http.StatusSeeOther {
		t.Errorf("a revoked token: got %d, want the sign-in", got.status)
	}
	live := s.signIn("ann", auth.ScopeRun)
	for range 3 { // requests of live parts do not extend the session
		s.clock.Advance(41 * time.Minute)
		live.send(http.MethodGet, "/health/now", nil, map[string]string{"HX-Request": "true"})
	}
	if got := live.send(http.MethodGet, "/health/now", nil,
		map[string]string{"HX-Request": "true"}); got.status != http.StatusUnauthorized ||
		got.header.Get("HX-Redirect") != "/sign-in" {
		t.Errorf("unused for two hours: got %d to %q, want the sign-in", got.status, got.header.Get("HX-Redirect"))
	}
	used := s.signIn("ann", auth.ScopeRun)
	hours := 0
	for ; used.get("/health").status == http.StatusOK && hours < 100; hours++ {
		s.clock.Advance(time.Hour)
	}
	if hours != 12 {
		t.Errorf("a session that is used lasted %d hours, want 12", hours)
	}
}

// The sign-in page does not redirect to other sites.
func TestNoOpenRedirect(t *testing.T) {
	s := serve(t, nil)
	_, token := s.token("ann", auth.ScopeRun)
	for _, next := range []string{
		"//evil.example", "https://evil.example", "/\\evil.example", "\\/evil.example", "/%0d%0aX: y\r\nX: y",
		"javascript:alert(1)", "/\t/evil.example",
		" //evil.example", "////evil.example", "http:evil.example", "?next=//evil.example", "", "evil.example",
		"/\u2028/evil.example", "/./\n/evil", "data:text/html,x", ".//evil.example",
	} {
		got := s.browser().send(http.MethodPost, "/sign-in", url.Values{"token": {token}, "next": {next}}, nil)
		if location := got.header.Get("Location"); !strings.HasPrefix(location, "/") ||
			strings.HasPrefix(location, "//") || strings.Contains(location, "\\") || got.header.Get("X") != "" {
			t.Errorf("%q leads to %q", next, location)
		}
		page := s.browser().get("/sign-in?next=" + url.QueryEscape(next))
		if strings.Contains(page.body, "evil.example") && !strings.Contains(page.body, `value="/`) {
			t.Errorf("%q: the form leads elsewhere: %s", next, page.body)
		}
	}
	elsewhere := s.browser().get("//evil.example/health")
	if location := elsewhere.header.Get("Location"); strings.HasPrefix(location, "//") ||
		strings.Contains(location, "next=%2F%2F") {
		t.Errorf("a path with two slashes leads to %q", location)
	}
}

// A form of another site or another session changes nothing.
func TestForeignFormsAreRefused(t *testing.T) {
	s := serve(t, nil)
	ann, bob := s.signIn("ann", auth.ScopeRun), s.signIn("bob", auth.ScopeRun)
	for name, headers := range map[string]map[string]string{
		"another site": {"Origin": "https://evil.example"}, "a sandboxed frame": {"Origin": "null"},
		"no page": {"Sec-Fetch-Site": "cross-site"}, "another port": {"Sec-Fetch-Site": "same-site"},
	} {
		if got := ann.send(http.MethodPost, "/sign-out", url.Values{"csrf": {ann.csrf()}},
			headers); got.status != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", name, got.status)
		}
		if got := ann.send(http.MethodPost, "/sign-in", url.Values{"token": {"x"}},
			headers); got.status != http.StatusForbidden || strings.Contains(got.body, "<form") {
			t.Errorf("%s, signing in: got %d %s, want a refusal before anything is read", name, got.status, got.body)
		}
	}
	for name, token := range map[string]string{"none": "", "another session's": bob.csrf()} {
		if got := ann.post("/sign-out", url.Values{"csrf": {token}}); got.status != http.StatusForbidden {
			t.Errorf("the token %s: got %d, want 403", name, got.status)
		}
	}
	if got := ann.get("/sign-out"); got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
		t.Errorf("a GET that signs out: got %d", got.status)
	}
	if got := ann.get("/health"); got.status != http.StatusOK {
		t.Errorf("after all of that: got %d, want that ann is signed in", got.status)
	}
}

// A browser with a session gets a new one when it signs in, so that an attacker who set the
// old cookie does not know the new one.
func TestSessionsAreNotFixed(t *testing.T) {
	s := serve(t, nil)
	b := s.browser()
	planted := &http.Cookie{Name: "airlock-console", Value: "planted", Path: "/"}
	b.client.Jar.SetCookies(mustParse(t, s.url), []*http.Cookie{planted})
	_, token := s.token("ann", auth.ScopeRun)
	b.send(http.MethodPost, "/sign-in", url.Values{"token": {token}}, nil)
	first := b.client.Jar.Cookies(mustParse(t, s.url))[0].Value
	b.send(http.MethodPost, "/sign-in", url.Values{"token": {token}}, nil)
	second := b.client.Jar.Cookies(mustParse(t, s.url))[0].Value
	if first == "planted" || first == second || len(first) != 43 {
		t.Errorf("got %q, then %q", first, second)
	}
	old := s.browser()
	old.client.Jar.SetCookies(mustParse(t, s.url), []*http.Cookie{{Name: "airlock-console", Value: first, Path: "/"}})
	if got := old.get("/health"); got.status != http.StatusSeeOther {
		t.Errorf("the session of before: got %d, want that it is over", got.status)
	}
	two := s.browser().send(http.MethodGet, "/health", nil,
		map[string]string{"Cookie": "airlock-console=" + second + "; airlock-console=planted"})
	if two.status != http.StatusSeeOther {
		t.Errorf("two cookies: got %d, want neither believed", two.status)
	}
}

// The number of sessions of a person is limited: the least recently used one ends.
func TestSessionsOfTheConsoleAreBounded(t *testing.T) {
	s := serve(t, nil)
	first, other := s.signIn("ann", auth.ScopeRun), s.signIn("bob", auth.ScopeRun)
	for range 20 {
		s.clock.Advance(time.Second)
		s.signIn("ann", auth.ScopeRun)
	}
	if got := first.get("/health"); got.status != http.StatusSeeOther {
		t.Errorf("ann's first session: got %d, want that it is over", got.status)
	}
	if got := other.get("/health"); got.status != http.StatusOK {
		t.Errorf("bob's session: got %d, want that it is there", got.status)
	}
}

func TestALinkSignsInOnce(t *testing.T) {
	s := serve(t, nil)
	local := caller.Caller{Principal: "root", Kind: caller.Local, Session: "console",
		Scopes: []string{auth.ScopeAdmin, caller.ScopeAllRuns}}
	link := func() (path, code string) {
		path, err := s.console.Link(local)
		if err != nil {
			t.Fatal(err)
		}
		_, code, _ = strings.Cut(path, "code=")
		return path, code
	}
	path, code := link()
	for range 3 { // a preview does not use the code
		if got := s.browser().get(path); got.status != http.StatusOK || got.header.Get("Set-Cookie") != "" ||
			!strings.Contains(got.body, code) {
			t.Fatalf("looking: got %d %s", got.status, got.body)
		}
	}
	// Requests with the code count for the account of its caller, not for the network (issue 23).
	for address, want := range map[string]bool{path: true, "/link?code=guess": false, "/?code=" + code: false} {
		if _, ok := s.console.Account(httptest.NewRequest(http.MethodGet, address, nil)); ok != want {
			t.Errorf("%s: got an account %t, want %t", address, ok, want)
		}
	}
	b := s.browser()
	if got := b.send(http.MethodPost, path, url.Values{"code": {code}}, nil); got.status != http.StatusSeeOther ||
		got.header.Get("Location") != "/" {
		t.Errorf("using: got %d %s", got.status, got.body)
	}
	if got := b.get("/health"); got.status != http.StatusOK || !strings.Contains(got.body, "root") {
		t.Errorf("signed in: got %d", got.status)
	}
	if got := s.browser().send(http.MethodPost, "/link", url.Values{"code": {code}},
		nil); got.status != http.StatusForbidden {
		t.Errorf("using it again: got %d, want 403", got.status)
	}
	_, code = link()
	s.clock.Advance(2 * time.Minute)
	if got := s.browser().send(http.MethodPost, "/link", url.Values{"code": {code}},
		nil); got.status != http.StatusForbidden {
		t.Errorf("two minutes later: got %d, want 403", got.status)
	}
	if got := s.browser().send(http.MethodPost, "/link", url.Values{"code": {"guess"}},
		nil); got.status != http.StatusForbidden {
		t.Errorf("a guess: got %d, want 403", got.status)
	}
	_, code = link()
	other := caller.Caller{Principal: "ann", Kind: caller.User, Session: "ses_ann"}
	for range 500 { // end the earlier links of this caller only
		if _, err := s.console.Link(other); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.browser().send(http.MethodPost, "/link", url.Values{"code": {code}},
		nil); got.status != http.StatusSeeOther {
		t.Errorf("after 500 links of another caller: got %d", got.status)
	}
}

func TestEveryAnswerIsProtected(t *testing.T) {
	s := serve(t, nil)
	b := s.signIn("ann", auth.ScopeRun)
	for _, path := range []string{"/", "/health", "/health/now", "/sign-in", "/link", "/none", "/assets/htmx.min.js",
		"/assets/console.css", "/assets/", "/assets/none", "/assets"} {
		got := b.get(path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'", "X-Content-Type-Options": "nosniff",
			"X-Frame-Options": "DENY",
			"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-", "Permissions-Policy": "camera=()",
		} {
			if !strings.HasPrefix(got.header.Get(name), want) {
				t.Errorf("%s: %s is %q, want %q", path, name, got.header.Get(name), want)
			}
		}
		if strings.Contains(got.header.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%s: %s", path, got.header.Get("Content-Security-Policy"))
		}
	}
	if got := b.get("/assets/"); got.status != http.StatusNotFound {
		t.Errorf("the directory of assets: got %d, want 404", got.status)
	}
	if got := b.send(http.MethodPost, "/health", url.Values{}, nil); got.status != http.StatusMethodNotAllowed &&
		got.status != http.StatusNotFound {
		t.Errorf("a POST to a page: got %d", got.status)
	}
	if got := b.send(http.MethodPost, "/sign-out", url.Values{"csrf": {strings.Repeat("x", 1<<20)}},
		nil); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a huge form: got %d, want 413", got.status)
	}
}

func TestTheCookieIsBoundToTLS(t *testing.T) {
	s := serve(t, func(o *console.Options) { o.Secure = true })
	_, token := s.token("ann", auth.ScopeRun)
	got := s.browser().send(http.MethodPost, "/sign-in", url.Values{"token": {token}}, nil)
	if cookie := got.header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "__Host-airlock-console=") ||
		!strings.Contains(cookie, "Secure") {
		t.Errorf("the cookie is %q", cookie)
	}
}

func TestAnotherHostIsRefused(t *testing.T) {
	s := serve(t, func(o *console.Options) { o.Hosts = []string{"airlock.example"} })
	for host, want := range map[string]int{"evil.example": http.StatusForbidden, "airlock.example": http.StatusOK,
		"localhost:1": http.StatusOK, "airlock.example.evil.example": http.StatusForbidden, "": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodGet, "/sign-in", nil)
		r.Host = host
		w := httptest.NewRecorder()
		s.console.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: got %d, want %d", host, w.Code, want)
		}
	}
}
