package oauth_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// newBrowser returns a browser with a jar of cookies, which follows redirects up to the callback.
func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.Path, "/callback") {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// visit returns the status of a page, and the address that it leads to.
func visit(t *testing.T, browser *http.Client, address string) (status int, next string) {
	t.Helper()
	response, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode, response.Header.Get("Location")
}

// Another browser sees the address of the start page, as in the arguments of xdg-open, or the state (issue 23: another
// user completed the sign-in with her account). Only the browser that began can answer.
func TestOnlyTheBrowserThatBeganCompletesTheSignIn(t *testing.T) {
	w := newWorld(t)
	s := source(t, w, t.TempDir(), nil, nil)
	p := &person{}
	p.invite = func(i oauth.Invitation) error {
		own, thief := newBrowser(t), newBrowser(t)
		if strings.Contains(i.Start, "state") || strings.Contains(i.Start, w.asked0(i).Get("state")) ||
			strings.Contains(i.Start, w.asked0(i).Get("code_challenge")) {
			t.Errorf("the start page %q has a secret of the sign-in in its address", i.Start)
		}
		_, answer := visit(t, own, i.Start)
		if !strings.Contains(answer, "/callback/") {
			t.Errorf("the start page leads to %q", answer)
		}
		if status, next := visit(t, thief, i.Start); status != http.StatusGone || next != "" {
			t.Errorf("the start page in another browser: got HTTP %d, %q, want 410", status, next)
		}
		_, stolen := visit(t, thief, i.Address) // consents with her own account
		for _, address := range []string{stolen, answer} {
			if status, _ := visit(t, thief, address); status != http.StatusBadRequest {
				t.Errorf("the callback in another browser: got HTTP %d, want 400", status)
			}
		}
		if status, next := visit(t, own, i.Start); status != http.StatusOK && !strings.Contains(next, "/callback/") {
			t.Errorf("the start page again in the same browser: got HTTP %d, %q", status, next)
		}
		if status, _ := visit(t, own, answer); status != http.StatusOK {
			t.Errorf("the callback in the browser that began: got HTTP %d", status)
		}
		return nil
	}
	if _, err := s.Login(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if code := w.forms[0].Get("code"); code != "code-0" {
		t.Errorf("the code %q was used, want that of the browser that began", code)
	}
}

// asked0 returns the query of an authorization request.
func (w *world) asked0(i oauth.Invitation) url.Values {
	u, err := url.Parse(i.Address)
	if err != nil {
		w.t.Fatal(err)
	}
	return u.Query()
}

// Another user of this machine connects to the port. The kernel knows whose socket it is.
func TestAnotherUserOfThisMachineIsRefused(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs root, to become another user, and curl")
	}
	w := newWorld(t)
	s := source(t, w, t.TempDir(), nil, nil)
	p := &person{}
	p.invite = func(i oauth.Invitation) error {
		browser := newBrowser(t)
		_, answer := visit(t, browser, i.Address)
		for _, address := range []string{i.Start, answer} {
			command := exec.Command(curl, "-s", "-o", "/dev/null", "-w", "%{http_code}", address)
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			if out, err := command.Output(); err != nil || string(out) != "403" {
				t.Errorf("%s of another user: got %s, %v, want 403", address, out, err)
			}
		}
		if status, _ := visit(t, browser, answer); status != http.StatusOK {
			t.Errorf("of the same user: got HTTP %d", status)
		}
		return nil
	}
	if _, err := s.Login(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
}

// Two authorization servers never share a redirect URI, so that the answer of one is not taken for that of the other
// (RFC 9700, section 4.4).
func TestEachIssuerHasItsOwnRedirectURI(t *testing.T) {
	redirects := map[string]bool{}
	for range 2 {
		w := newWorld(t)
		s := source(t, w, t.TempDir(), nil, nil)
		p := &person{}
		p.invite = func(i oauth.Invitation) error {
			redirect, err := url.Parse(w.asked0(i).Get("redirect_uri"))
			if err != nil {
				return err
			}
			redirects[redirect.Path] = true
			if i.Origin != w.issuer.URL {
				t.Errorf("the person sees %q, want the origin of the authorization endpoint", i.Origin)
			}
			// The answer of another issuer's flow comes to this port.
			status, _ := visit(t, newBrowser(t), strings.Replace(
				w.asked0(i).Get("redirect_uri"), redirect.Path, "/callback/0123456789abcdef", 1)+
				"?code=x&state="+w.asked0(i).Get("state"))
			if status != http.StatusNotFound {
				t.Errorf("another issuer's redirect URI: got HTTP %d, want 404", status)
			}
			response, err := http.Get(i.Address)
			if err == nil {
				response.Body.Close()
			}
			return err
		}
		if _, err := s.Login(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(redirects) != 2 {
		t.Errorf("got the redirect URIs %v, want two", redirects)
	}
}

// The server claims another name than that of its page. The person sees the origin of the page.
func TestThePersonSeesWhereTheBrowserGoes(t *testing.T) {
	w := newWorld(t)
	w.change[asPath] = func(d map[string]any) {
		d["authorization_endpoint"] = "https://phishing.example/authorize?as=" + w.issuer.URL
	}
	s := source(t, w, t.TempDir(), nil, nil)
	stop := fmt.Errorf("the person stops")
	p := &person{invite: func(oauth.Invitation) error { return stop }}
	if _, err := s.Login(t.Context(), p, nil); err == nil {
		t.Error("signed in")
	}
	if len(p.seen) != 1 || p.seen[0].Origin != "https://phishing.example" {
		t.Errorf("the person sees %+v", p.seen)
	}
}

// A client that was registered by hand belongs to one authorization server. A server that names another one later does
// not get the client's secret sent there.
func TestAConfiguredClientIsNotShownToAnotherIssuer(t *testing.T) {
	honest, evil := newWorld(t), newWorld(t)
	s := source(t, honest, t.TempDir(), nil, func(c *oauth.Config) {
		c.ClientID, c.ClientSecret = "mine",
			secret.New("s3cret-of-the-client")
	})
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	honest.change[prmPath] = func(d map[string]any) { d["authorization_servers"] = []string{evil.issuer.URL} }
	if _, err := s.Login(t.Context(), &person{}, nil); err == nil || !strings.Contains(err.Error(), "oauth.issuer") {
		t.Errorf("got %v, want that the issuer has to be configured", err)
	}
	if n := evil.count(tokenPath); n != 0 {
		t.Errorf("the other issuer got %d token requests", n)
	}
}

// The person sees the account before it is stored or used.
func TestTheAccountIsShown(t *testing.T) {
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"id1","email":"ada@example.com\u001b[2J"}`))
	for name, tc := range map[string]struct {
		idToken any
		info    string
		want    string
	}{
		"an ID token":                      {"e30." + claims + ".sig", "", "ada@example.com\\u{1b}[2J"},
		"the userinfo endpoint":            {nil, `{"sub":"id1","preferred_username":"ada"}`, "ada"},
		"nothing":                          {nil, "", ""},
		"an ID token that cannot be read":  {"e30.@@.sig", "", ""},
		"an ID token that is not a token":  {"none", "", ""},
		"an endpoint that cannot be asked": {nil, "gone", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.token = func(_ url.Values, answer map[string]any) int {
				if tc.idToken != nil {
					answer["id_token"] = tc.idToken
				}
				return 200
			}
			if tc.info != "" {
				w.change[asPath] = func(d map[string]any) { d["userinfo_endpoint"] = w.issuer.URL + "/userinfo" }
				w.userinfo = func(rw http.ResponseWriter, r *http.Request) {
					if tc.info == "gone" || r.Header.Get("Authorization") != "Bearer access-token-1" {
						http.Error(rw, "", http.StatusUnauthorized)
						return
					}
					rw.Header().Set("Content-Type", "application/json")
					io.WriteString(rw, tc.info)
				}
			}
			s := source(t, w, t.TempDir(), nil, nil)
			p := &person{}
			got, err := s.Login(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			state, err := s.State()
			if err != nil || len(p.shown) != 1 || p.shown[0].Account != tc.want || got.Account != tc.want ||
				state.Account != tc.want {
				t.Errorf("the person was shown %+v, the outcome is %+v, the state %+v, %v, want %q", p.shown, got,
					state, err, tc.want)
			}
		})
	}
}
