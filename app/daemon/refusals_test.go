package daemon

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// refusedLines counts the lines of a log about refused tokens that contain all texts.
func refusedLines(log *testenv.Output, texts ...string) int {
	n := 0
next:
	for line := range strings.Lines(log.String()) {
		for _, text := range append(texts, "a token was refused", "network=127.0.0.1") {
			if !strings.Contains(line, text) {
				continue next
			}
		}
		n++
	}
	return n
}

// The log contains the reason why a token was refused, on every face, but never the token. The
// answer only states that the token is not valid.
func TestTheOperatorLearnsWhyATokenIsRefused(t *testing.T) {
	issuer := newSigner(t)
	log := &testenv.Output{}
	s := serve(t, "auth: {issuer: \""+issuer.url+"\", audience: \"http://127.0.0.1/mcp\"}\n", func(d *Daemon) {
		d.identify.Refused = newRefusals(slog.New(slog.NewTextHandler(log, nil))).note
	})
	list, err := s.daemon.known.Tokens().List(t.Context())
	if err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	revoked := s.token("ann", auth.ScopeRun)
	if list, err = s.daemon.known.Tokens().List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.daemon.known.Tokens().Revoke(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	foreign := newSigner(t).token("ann", "c", "run") // has the key ID of the issuer's key
	for _, test := range []struct {
		path, token string
		status      int
		logged      []string
	}{
		{"/mcp", revoked, http.StatusUnauthorized, []string{"reason=revoked", "token_id=" + list[0].ID}},
		{"/v1/agents", revoked, http.StatusUnauthorized, []string{"reason=revoked"}},
		{"/mcp", foreign, http.StatusUnauthorized,
			[]string{"reason=wrong_issuer", "claimed_key_id=k", "claimed_issuer=http://127.0.0.1:"}},
		{gatewayPath, "a.b.c", http.StatusUnauthorized, []string{"reason=malformed"}},
		{"/mcp", issuer.token("ann", "c", "audit"), http.StatusForbidden,
			[]string{"reason=missing_scope", "scope=run", "caller=" + issuer.url + "#ann"}},
		{"/v1/agents", issuer.token("bob", "c", "audit"), http.StatusForbidden,
			[]string{"reason=missing_scope", "scope=agents", "caller=" + issuer.url + "#bob"}},
	} {
		before := refusedLines(log, test.logged...)
		res, body := s.post(test.path, test.token, "{}")
		if res.StatusCode != test.status || test.status == http.StatusUnauthorized &&
			!strings.Contains(string(body), `"the token is not valid"`) {
			t.Errorf("%s, %q: got %d, %s, want %d", test.path, test.logged, res.StatusCode, body, test.status)
		}
		if got := refusedLines(log, test.logged...) - before; got != 1 {
			t.Errorf("%s, %q: got %d lines, want 1: %s", test.path, test.logged, got, log.String())
		}
		if strings.Contains(log.String(), test.token) {
			t.Errorf("the token is in the log: %s", log.String())
		}
	}
	res, _ := s.post("/mcp", "", "{}")
	if got := refusedLines(log); res.StatusCode != http.StatusUnauthorized || got != 6 {
		t.Errorf("a request without a token: got %d, and %d lines in all, want 6", res.StatusCode, got)
	}
}

// Thousands of refused tokens are logged in a few lines, and the next line has their number.
// The limits of reasons are independent.
func TestRefusedTokensDoNotFillTheLog(t *testing.T) {
	log := &testenv.Output{}
	l := newRefusals(slog.New(slog.NewTextHandler(log, nil)))
	for range 10_000 {
		l.note(t.Context(), &auth.InvalidError{Reason: auth.Malformed})
	}
	lines := strings.Count(log.String(), "\n")
	if lines < loggedAtOnce || lines > 100 { // one more for each pause that the loop took
		t.Errorf("got %d lines", lines)
	}
	mine := l.limits.named(string(auth.Malformed))
	mine.rate.SetBurst(1000) // as if time had passed
	mine.rate.SetLimit(1e9)
	testenv.Await(t, "what was not logged is counted", func() bool {
		l.note(t.Context(), &auth.InvalidError{Reason: auth.Malformed})
		return strings.Contains(log.String(), "not_logged=")
	})
	l.note(t.Context(), auth.ErrProfiles)
	if !strings.Contains(log.String(), "reason=two_profiles") {
		t.Error("another reason was not logged")
	}
}

// If the issuer cannot be reached, its clients get an error that can be retried, on every face,
// and a few lines are logged with the reason.
func TestAnIssuerThatIsAwayDoesNotFillTheLog(t *testing.T) {
	issuer, log := newSigner(t), &testenv.Output{}
	s := serveLogged(t, log, "auth: {issuer: \""+issuer.url+"\", audience: \"http://127.0.0.1/mcp\"}\n")
	token := issuer.token("ann", "c", "run")
	issuer.server.Close()
	signIn := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/sign-in",
			strings.NewReader(url.Values{"token": {token}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", s.url)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	const requests = 50
	for door, ask := range map[string]func() *http.Response{
		"a caller could not be looked up": func() *http.Response {
			res, _ := s.post("/mcp", token, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			return res
		},
		"who sent a request of the API could not be looked up": func() *http.Response {
			res,
				_ := s.post("/v1/agents", token, "{}")
			return res
		},
		"who uses the console could not be looked up": signIn,
	} {
		for range requests {
			if res := ask(); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
				t.Fatalf("%q: got %d, want that it may be sent again", door, res.StatusCode)
			}
		}
		if lines := strings.Count(log.String(), door); lines < 1 || lines > requests/2 {
			t.Errorf("%q: got %d lines:\n%s", door, lines, log)
		}
		if !hasLine(log, door, "connection refused") {
			t.Errorf("no line %q shows why:\n%s", door, log)
		}
	}
	if !hasLine(log, "the issuer's keys cannot be read: none of its tokens counts", "connection refused") {
		t.Errorf("the log does not say that the issuer is away:\n%s", log)
	}
}

// hasLine reports whether a line of a log contains all texts.
func hasLine(log *testenv.Output, texts ...string) bool {
next:
	for line := range strings.Lines(log.String()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue next
			}
		}
		return true
	}
	return false
}
