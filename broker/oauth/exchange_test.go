package oauth_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// idp makes the authorization server of a world an identity provider, which also issues the tokens of the server.
type idp struct {
	*world
	clock *testenv.Clock

	mu       sync.Mutex
	id       map[string]any // claims of ID tokens in place of the right ones
	refuses  string         // the error code of exchanges; empty for none
	kind     string         // issued_token_type in place of the right one
	lifetime float64        // of exchanged tokens, in seconds
	waits    func()         // called at each exchange; may be nil
	n        int
}

func jwt(claims map[string]any) string {
	raw, _ := json.Marshal(claims) // texts and numbers
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(raw) + ".c2ln"
}

func newIDP(t *testing.T) *idp {
	i := &idp{world: newWorld(t), clock: testenv.NewClock(time.Now()), id: map[string]any{}, lifetime: 3600}
	i.token = func(form url.Values, answer map[string]any) int {
		i.mu.Lock()
		defer i.mu.Unlock()
		if form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" {
			i.addID(answer)
			if answer["error"] != nil {
				return http.StatusBadRequest
			}
			return http.StatusOK
		}
		if i.waits != nil {
			i.waits()
		}
		if i.refuses != "" {
			answer["error"] = i.refuses
			return http.StatusBadRequest
		}
		i.n++
		clear(answer)
		kind := form.Get("requested_token_type")
		if i.kind != "" {
			kind = i.kind
		}
		maps.Copy(answer, map[string]any{"access_token": fmt.Sprintf("exchanged-%d", i.n), "token_type": "Bearer",
			"issued_token_type": kind, "expires_in": i.lifetime})
		return http.StatusOK
	}
	return i
}

// addID adds an ID token with the nonce of the newest authorization request.
func (i *idp) addID(answer map[string]any) {
	claims := map[string]any{"iss": i.issuer.URL, "sub": "ann", "aud": "airlock-idp",
		"exp": i.clock.Now().Add(5 * time.Minute).Unix(), "nonce": i.asked[len(i.asked)-1].Get("nonce")}
	maps.Copy(claims, i.id)
	answer["id_token"] = jwt(claims)
}

func (i *idp) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *idp) exchanges() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.n
}

func (i *idp) source(t *testing.T, principal, directory string) *oauth.Source {
	t.Helper()
	s, err := oauth.New(oauth.Config{ServerID: "crm", URL: i.url(), Grant: oauth.TokenExchange,
		Provider: oauth.Provider{Issuer: i.issuer.URL, ClientID: "airlock-idp"}},
		&oauth.Options{Store: oauth.StoreIn(t, directory), Principal: principal,
			Now: i.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Issue 31: the sign-in at the identity provider ends with an error if its ID token is not about this sign-in.
func TestIDTokensOfOthersAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"another issuer":   {map[string]any{"iss": "https://other.example"}, "another issuer"},
		"another client":   {map[string]any{"aud": []string{"other"}}, "another client"},
		"replayed":         {map[string]any{"nonce": "of-another-sign-in"}, "another sign-in"},
		"expired":          {map[string]any{"exp": 1}, "expired"},
		"nobody":           {map[string]any{"sub": ""}, "another person"},
		"another person":   {map[string]any{"sub": "bob"}, "not the one"},
		"the right person": {nil, ""},
	} {
		i := newIDP(t)
		i.id = test.claims
		_, err := i.source(t, i.issuer.URL+"#ann", t.TempDir()).Login(t.Context(), &person{}, nil)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// Issue 31: requests carry the exchanged token and never the person's own. It is kept in memory, for ten minutes at
// most.
func TestExchangedTokensAreBounded(t *testing.T) {
	i, directory := newIDP(t), t.TempDir()
	s := i.source(t, "ann", directory)
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	signer := s.Bind()
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "exchanged-1"}, {9 * time.Minute, "exchanged-1"}, {2 * time.Minute, "exchanged-2"}} {
		i.clock.Advance(step.after)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.url(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := signer.Sign(t.Context(), request); err != nil ||
			request.Header.Get("Authorization") != "Bearer "+step.want {
			t.Errorf("got %q, %v, want %q", request.Header.Get("Authorization"), err, step.want)
		}
	}
	exchanges := slices.DeleteFunc(slices.Clone(i.forms), func(form url.Values) bool {
		return form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange"
	})
	if len(exchanges) != 2 {
		t.Errorf("%d exchanges were made, want 2", len(exchanges))
	}
	for _, form := range exchanges {
		if form.Get("subject_token") != "access-token-1" || form.Get("resource") != i.url() ||
			form.Get("client_id") != "airlock-idp" || form.Get("actor_token") != "" {
			t.Errorf("got the exchange %v", form)
		}
	}
	if _, err := s.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, i.url(), nil)
	err := signer.Sign(t.Context(), request)
	wantSignIn(t, err, "not signed in", "airlock login crm")
	if request.Header.Get("Authorization") != "" || !signer.Changed() {
		t.Error("a token is sent after the sign-out")
	}
}

// Issue 31: a renewed sign-in of another person ends the sign-in.
func TestARenewedSignInOfAnotherPersonEnds(t *testing.T) {
	i := newIDP(t)
	s := i.source(t, "ann", t.TempDir())
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	i.set(func() { i.id["sub"] = "bob" })
	i.clock.Advance(2 * time.Hour)
	_, err := signed(t, s, i.url())
	wantSignIn(t, err, "another person", "airlock login crm")
	if n := i.exchanges(); n != 0 {
		t.Errorf("got %d exchanges", n)
	}
}

// Issue 31: a refused exchange is made again once with a renewed subject token, and then not for a while. A token of
// another type is not used, and neither is one that the server refuses at once.
func TestRefusedExchanges(t *testing.T) {
	i := newIDP(t)
	s := i.source(t, "ann", t.TempDir())
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	i.set(func() { i.refuses = "invalid_request" })
	before := len(i.forms)
	for range 3 {
		_, err := signed(t, s, i.url())
		wantSignIn(t, err, "the identity provider: the authorization server answered \"invalid_request\"", "")
	}
	if got := len(i.forms) - before; got != 3 {
		t.Errorf("got %d requests for tokens, want an exchange, a renewal and an exchange", got)
	}
	i.clock.Advance(time.Minute)
	i.set(func() { i.refuses, i.kind = "", "urn:ietf:params:oauth:token-type:refresh_token" })
	_, err := signed(t, s, i.url())
	wantSignIn(t, err, "another type", "")
	i.clock.Advance(time.Minute)
	i.set(func() { i.kind = "" })
	header, err := signed(t, s, i.url())
	if err != nil || !strings.HasPrefix(header, "Bearer exchanged-") {
		t.Fatalf("got %q, %v", header, err)
	}
	again, err := refused(t, s, i.world, strings.TrimPrefix(header, "Bearer "), 401, "Bearer")
	wantSignIn(t, err, "does not accept", "")
	if again {
		t.Error("the request is sent again")
	}
}

// Issue 31: a call that is cancelled during the exchange does not keep the next one from getting a token.
func TestACancelledExchangeRefusesNoOther(t *testing.T) {
	i := newIDP(t)
	s := i.source(t, "ann", t.TempDir())
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	i.set(func() { i.waits = func() { cancel(); <-over } })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.url(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Bind().Sign(ctx, request); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	close(over)
	i.set(func() { i.waits = nil })
	if header, err := signed(t, s, i.url()); err != nil || !strings.HasPrefix(header, "Bearer exchanged-") {
		t.Errorf("the next call: %q, %v", header, err)
	}
}

// Issue 31: metadata cannot send the tokens of a person to the metadata service of a cloud, over plain HTTP, or to the
// authorization server that the server prefers.
func TestWhereExchangesGo(t *testing.T) {
	for name, test := range map[string]struct {
		path string
		set  func(document map[string]any)
		want string
	}{
		"metadata service": {asPath, func(d map[string]any) { d["token_endpoint"] = "https://169.254.169.254/token" },
			"169.254.169.254"},
		"plain HTTP": {asPath, func(d map[string]any) { d["token_endpoint"] = "http://idp.example/token" }, "https"},
		"another one": {prmPath,
			func(d map[string]any) { d["authorization_servers"] = []string{"https://evil.example"} }, "evil"},
		"another name": {prmPath, func(d map[string]any) { d["resource"] = "https://evil.example/mcp" },
			"another resource"},
	} {
		i := newIDP(t)
		s := i.source(t, "ann", t.TempDir())
		if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
			t.Fatal(err)
		}
		i.change[test.path] = test.set
		_, err := signed(t, s, i.url())
		wantSignIn(t, err, test.want, "")
		if n := i.exchanges(); n != 0 {
			t.Errorf("%s: got %d exchanges", name, n)
		}
	}
}

// Issue 31: settings that do not fit each other are refused with the missing key.
func TestSettingsOfExchanges(t *testing.T) {
	at := oauth.Provider{Issuer: "https://idp.example", ClientID: "airlock"}
	for want, c := range map[string]oauth.Config{
		"issuer":             {Grant: oauth.Enterprise, Client: oauth.Client{ClientID: "a"}, Provider: at},
		"provider.issuer":    {Grant: oauth.TokenExchange},
		"provider.clientKey": {Grant: oauth.TokenExchange, Provider: at, Delegate: true},
		"delegate needs":     {Delegate: true},
		"no clientId":        {Grant: oauth.TokenExchange, Provider: at, Client: oauth.Client{ClientID: "a"}},
		"dpop":               {Grant: oauth.TokenExchange, Provider: at, DPoP: true},
	} {
		c.ServerID, c.URL = "crm", "https://crm.example/mcp"
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}
