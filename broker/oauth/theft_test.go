package oauth_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// rotates makes the world an authorization server that detects the reuse of a refresh token (RFC 9700, section 4.14.2):
// it then revokes all of them.
func (w *world) rotates() {
	used := map[string]bool{}
	w.token = func(form url.Values, answer map[string]any) int {
		w.mu.Lock()
		defer w.mu.Unlock()
		token := form.Get("refresh_token")
		if used[token] {
			clear(w.refresh)
		}
		used[token] = token != ""
		if answer["error"] != nil {
			return 400
		}
		return 200
	}
}

// steal uses a refresh token as a thief does, and reports whether it was accepted.
func (w *world) steal(t *testing.T, token string) bool {
	t.Helper()
	response, err := http.PostForm(w.issuer.URL+tokenPath, url.Values{"grant_type": {"refresh_token"},
		"refresh_token": {token}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// RFC 9700, section 4.14: a refresh token that two have used ends the sign-in of both, whoever was first, and only that
// sign-in.
func TestARefreshTokenThatTwoHaveUsed(t *testing.T) {
	for _, thiefIsFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("the thief is first: %t", thiefIsFirst), func(t *testing.T) {
			w, s, c, directory := signedIn(t)
			w.rotates()
			another, err := oauth.New(oauth.Config{ServerID: "crm", URL: w.url()},
				&oauth.Options{Store: oauth.StoreIn(t, directory), Principal: "bob", Now: c.Now})
			if err != nil {
				t.Fatal(err)
			}
			if header, err := signed(t, another, w.url()); header != "" || err != nil {
				t.Fatalf("another principal: got %q, %v, want no token", header, err)
			}
			c.Advance(2 * time.Hour)
			if !thiefIsFirst {
				if got, err := signed(t, s, w.url()); got != "Bearer access-token-2" || err != nil {
					t.Fatalf("got %q, %v", got, err)
				}
			}
			if w.steal(t, "refresh-token-1") != thiefIsFirst {
				t.Fatal("the authorization server does not rotate")
			}
			c.Advance(2 * time.Hour)
			for range 3 {
				_, err := signed(t, s, w.url())
				wantSignIn(t, err, "no longer accepts it", "airlock login crm")
			}
			if w.steal(t, "refresh-token-2") {
				t.Error("the thief's token is still accepted")
			}
			if state, err := s.State(); err != nil || state.IsSignedIn {
				t.Errorf("got %+v, %v", state, err)
			}
			if header, err := signed(t, another, w.url()); header != "" || err != nil {
				t.Errorf("another principal: got %q, %v, want no token", header, err)
			}
		})
	}
}

// A sign-in that was restored from a backup has a refresh token that was used. It ends the sign-in and is not tried
// again.
func TestAnOldSignInThatWasPutBack(t *testing.T) {
	w, s, c, directory := signedIn(t)
	w.rotates()
	store := oauth.StoreIn(t, directory)
	before := store.Rows(t)
	c.Advance(2 * time.Hour)
	if _, err := signed(t, s, w.url()); err != nil {
		t.Fatal(err)
	}
	store.Put(t, before)
	asked := w.count(tokenPath)
	for range 3 {
		_, err := signed(t, source(t, w, directory, c, nil), w.url())
		wantSignIn(t, err, "no longer accepts it", "airlock login crm")
	}
	if got := w.count(tokenPath) - asked; got != 1 {
		t.Errorf("the old token was shown %d times, want once", got)
	}
}

// A server demands other scopes at each call. The kept demands and the cost of a call are bounded.
func TestDemandsForScopesAreBounded(t *testing.T) {
	w, s, _, directory := signedIn(t)
	for i := range 50 {
		var scopes strings.Builder
		for j := range 1000 {
			fmt.Fprintf(&scopes, "s%d-%d ", i, j)
		}
		challenge := fmt.Sprintf(`Bearer error="insufficient_scope", scope="%sé \\"x\\" %s"`, &scopes,
			strings.Repeat("long", 1000))
		again, err := refused(t, s, w, "access-token-1", 403, challenge)
		if again || err == nil {
			t.Fatalf("got %t, %v, want a refusal", again, err)
		}
		if n := len(err.Error()); n > 2<<10 {
			t.Fatalf("the error has %d bytes", n)
		}
	}
	state, err := source(t, w, directory, nil, nil).State()
	if err != nil || len(state.Wanted) != 200 || state.Wanted[0] != "s49-0" {
		t.Errorf("got %d scopes, the first %q (%v), want the newest 200", len(state.Wanted), state.Wanted[:1], err)
	}
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Errorf("a sign-in afterwards: %v", err)
	}
	if state, err := s.State(); err != nil || len(state.Wanted) != 0 {
		t.Errorf("after the sign-in: got %q, %v, want nothing more", state.Wanted, err)
	}
}

// A demand for scopes neither gives a sign-in to another principal nor shows one to another issuer, and the person sees
// each scope before the browser opens.
func TestADemandForScopesStaysWithItsSignIn(t *testing.T) {
	w, s, c, directory := signedIn(t)
	evil := newWorld(t)
	another, err := oauth.New(oauth.Config{ServerID: "crm", URL: w.url()},
		&oauth.Options{Store: oauth.StoreIn(t, directory), Principal: "bob", Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	challenge := fmt.Sprintf(`Bearer error="insufficient_scope", scope="delete", resource_metadata="%s%s"`,
		evil.resource.URL, prmPath)
	if again, err := refused(t, another, w, "access-token-1", 403, challenge); again || err == nil {
		t.Errorf("another principal with a token that is not its own: got %t, %v", again, err)
	}
	if state, err := another.State(); err != nil || state.IsSignedIn || len(state.Wanted) != 0 {
		t.Errorf("another principal: got %+v, %v", state, err)
	}
	if again, err := refused(t, s, w, "access-token-1", 403, challenge); again || err == nil {
		t.Errorf("got %t, %v, want that a person decides", again, err)
	}
	p := &person{}
	if _, err := s.Login(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "another resource") {
		t.Errorf("metadata of another server: got %v", err)
	}
	if n := evil.count(tokenPath) + evil.count("/register"); n != 0 || len(p.seen) != 0 {
		t.Errorf("the other issuer got %d requests, and the person saw %+v", n, p.seen)
	}
	fresh := source(t, w, directory, c, nil) // without the challenge
	if _, err := fresh.Login(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	seen := slices.Sorted(slices.Values(p.seen[0].Scopes))
	if !slices.Equal(seen, []string{"delete", "read"}) || !slices.Equal(seen, w.scopes()) {
		t.Errorf("the person saw %q, and %q was asked for", seen, w.scopes())
	}

	// Another issuer gets nothing of what the sign-in at the first one had, or was asked for.
	more := `Bearer error="insufficient_scope", scope="more"`
	if _, err := refused(t, fresh, w, "access-token-2", 403, more); err == nil {
		t.Fatal("want a refusal")
	}
	w.change[prmPath] = func(d map[string]any) { d["authorization_servers"] = []string{evil.issuer.URL} }
	if _, err := source(t, w, directory, c, nil).Login(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if got := evil.scopes(); !slices.Equal(got, []string{"read"}) {
		t.Errorf("the other issuer was asked for %q, want those of the metadata", got)
	}
}

// Grants without a person ask for more once, and not without end.
func TestDemandsForScopesOfAMachineEnd(t *testing.T) {
	w, c := newWorld(t), testenv.NewClock(time.Now())
	s := source(t, w, t.TempDir(), c, func(c *oauth.Config) {
		c.Grant, c.ClientID, c.ClientSecret = oauth.ClientCredentials, "mine", secret.New("client secret/1")
	})
	w.token = func(form url.Values, answer map[string]any) int { answer["scope"] = "read"; return 200 }
	if again, err := refused(t, s, w, "", 401, `Bearer`); !again || err != nil {
		t.Fatalf("got %t, %v", again, err)
	}
	for i := range 5 {
		before := len(w.forms)
		token := fmt.Sprintf("access-token-%d", i+1)
		again, err := refused(t, s, w, token, 403, `Bearer error="insufficient_scope", scope="admin"`)
		if again || len(w.forms) > before+1 {
			t.Errorf("got %t, %v and %d requests for tokens, want one and no other try", again, err,
				len(w.forms)-before)
		}
	}
	evil := newWorld(t)
	w.change[prmPath] = func(d map[string]any) { d["authorization_servers"] = []string{evil.issuer.URL} }
	if _, err := s.Login(t.Context(), &person{}, nil); err == nil || !strings.Contains(err.Error(), "oauth.issuer") {
		t.Errorf("a configured client at another issuer: got %v", err)
	}
	if n := evil.count(tokenPath); n != 0 {
		t.Errorf("the other issuer got %d requests with the client's secret", n)
	}
}
