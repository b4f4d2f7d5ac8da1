package oauth_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/broker/oauth"
)

// remotePerson signs in with a browser that reaches Airlock at a public address.
type remotePerson struct {
	person
	receiver *oauth.Receiver
}

func (p *remotePerson) Receiver() *oauth.Receiver { return p.receiver }

// publicAddress serves a receiver. The query parameter "as" takes the place of a session of the console.
func publicAddress(t *testing.T) *oauth.Receiver {
	t.Helper()
	var receiver *oauth.Receiver
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sign-ins/go/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !receiver.Begin(w, r, r.PathValue("id"), r.FormValue("as")) {
			http.NotFound(w, r)
		}
	})
	mux.HandleFunc("GET /sign-ins/callback/{issuer}", func(w http.ResponseWriter, r *http.Request) {
		receiver.Answer(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	receiver = oauth.NewReceiver(server.URL+"/", func(id string) string { return id + ".n1" })
	return receiver
}

// answerOf begins in a browser as a principal and consents. It returns the address of the answer.
func answerOf(t *testing.T, browser *http.Client, i oauth.Invitation, as string) string {
	t.Helper()
	browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.Path, "/sign-ins/callback") {
			return http.ErrUseLastResponse
		}
		return nil
	}
	_, answer := visit(t, browser, i.Address+"?as="+as)
	if !strings.Contains(answer, "/sign-ins/callback/") {
		t.Fatalf("got %q, want an answer", answer)
	}
	return answer
}

// with returns an address with another value of a parameter.
func with(t *testing.T, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// Only the browser in which the principal of the sign-in began answers, once, with the state, at the redirect URI of
// the issuer (issue 31).
func TestOnlyThePrincipalsBrowserAnswersInPublic(t *testing.T) {
	w := newWorld(t)
	p := &remotePerson{receiver: publicAddress(t)}
	p.invite = func(i oauth.Invitation) error {
		own, eve := newBrowser(t), newBrowser(t)
		if !i.Public || strings.Contains(i.Address, "state") || i.Origin != w.issuer.URL ||
			!strings.HasSuffix(i.Start, ".n1") {
			t.Errorf("got the invitation %+v", i)
		}
		// A person who is led to the page of somebody else's sign-in does not complete it with her account.
		if status, next := visit(t, eve, i.Address+"?as=eve"); status != http.StatusNotFound || next != "" {
			t.Errorf("another principal at the start page: got HTTP %d, %q", status, next)
		}
		answer := answerOf(t, own, i, "ada")
		if status, _ := visit(t, eve, i.Address+"?as=ada"); status != http.StatusGone {
			t.Errorf("a second browser: got HTTP %d, want 410", status)
		}
		u, _ := url.Parse(answer)
		if !strings.HasSuffix(u.Query().Get("state"), ".n1") {
			t.Errorf("the state %q does not name the node", u.Query().Get("state"))
		}
		foreign := map[string]struct {
			browser *http.Client
			address string
		}{
			"in another browser": {eve, answer},
			"another state":      {own, with(t, answer, "state", "x.n1")},
			"no state":           {own, with(t, answer, "state", "")},
			"two states":         {own, answer + "&state=x"},
			"two codes":          {own, answer + "&code=x"},
			"the URI of another issuer": {own, strings.Replace(answer, u.Path,
				"/sign-ins/callback/0123456789abcdef", 1)},
		}
		for name, c := range foreign {
			if status, _ := visit(t, c.browser, c.address); status != http.StatusBadRequest {
				t.Errorf("%s: got HTTP %d, want 400", name, status)
			}
		}
		if status, _ := visit(t, own, answer); status != http.StatusOK {
			t.Errorf("the answer: got HTTP %d", status)
		}
		if status, _ := visit(t, own, with(t, answer, "code", "other")); status == http.StatusOK {
			t.Error("a second answer was accepted")
		}
		return nil
	}
	s := source(t, w, t.TempDir(), nil, nil)
	if _, err := s.Login(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if got := w.forms[0]; got.Get("code") != "code-0" || got.Get("code_verifier") == "" ||
		!strings.HasPrefix(got.Get("redirect_uri"), "http://127.0.0.1:") || got.Get("resource") != w.url() {
		t.Errorf("got the token request %v", got)
	}
	// The sign-in is over: its pages lead nowhere.
	if status, _ := visit(t, newBrowser(t), p.seen[0].Address+"?as=ada"); status != http.StatusNotFound {
		t.Errorf("after the end: got HTTP %d, want 404", status)
	}
}

// An answer of another issuer ends the sign-in, and no code is sent to either (RFC 9207).
func TestMixedUpIssuersInPublic(t *testing.T) {
	for name, iss := range map[string]string{"another": "https://evil.example", "none": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := &remotePerson{receiver: publicAddress(t)}
			p.invite = func(i oauth.Invitation) error {
				own := newBrowser(t)
				answer := answerOf(t, own, i, "ada")
				visit(t, own, with(t, answer, "iss", iss))
				return nil
			}
			s := source(t, w, t.TempDir(), nil, nil)
			_, err := s.Login(t.Context(), p, nil)
			if err == nil || !strings.Contains(err.Error(), "authorization server") {
				t.Errorf("got %v, want a refusal", err)
			}
			if n := w.count(tokenPath); n != 0 {
				t.Errorf("%d codes were sent", n)
			}
		})
	}
}

// An attacker cannot have her code used for somebody else's sign-in: it belongs to another verifier (PKCE).
func TestInjectedCodesAreUseless(t *testing.T) {
	w := newWorld(t)
	receiver := publicAddress(t)
	evil := &remotePerson{receiver: receiver}
	stolen := make(chan string, 1)
	evil.invite = func(i oauth.Invitation) error {
		u, _ := url.Parse(answerOf(t, newBrowser(t), i, "ada"))
		stolen <- u.Query().Get("code")
		return http.ErrAbortHandler // she does not answer
	}
	if _, err := source(t, w, t.TempDir(), nil, nil).Login(t.Context(), evil, nil); err == nil {
		t.Fatal("the attacker's sign-in has no answer")
	}
	victim := &remotePerson{receiver: receiver}
	victim.invite = func(i oauth.Invitation) error {
		own := newBrowser(t)
		visit(t, own, with(t, answerOf(t, own, i, "ada"), "code", <-stolen))
		return nil
	}
	if _, err := source(t, w, t.TempDir(), nil, nil).Login(t.Context(), victim, nil); err == nil {
		t.Error("a code of another sign-in was redeemed")
	}
}
