package oauth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// person opens the address with a browser that follows redirects, unless a test sets
// invite.
type person struct {
	invite func(i oauth.Invitation) error
	paste  func(ctx context.Context) (string, error)

	mu      sync.Mutex
	seen    []oauth.Invitation
	strange int
	shown   []oauth.SignedIn
	foreign bool   // the browser is another user's
	page    string // that the browser has ended with
}

func (p *person) Invite(ctx context.Context, i oauth.Invitation) error {
	p.mu.Lock()
	p.seen = append(p.seen, i)
	p.mu.Unlock()
	if p.invite != nil {
		return p.invite(i)
	}
	response, err := http.Get(i.Address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	p.page = string(text)
	return err
}

func (p *person) Paste(ctx context.Context) (string, error) {
	if p.paste == nil {
		return "", errors.New("nothing is pasted")
	}
	return p.paste(ctx)
}

func (p *person) OwnsBrowser() bool { return !p.foreign }

func (p *person) Show(s oauth.SignedIn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = append(p.shown, s)
}

func (p *person) Strange() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strange++
}

// source is one for the world's server, kept in directory.
func source(t *testing.T, w *world, directory string, c *testenv.Clock, change func(*oauth.Config)) *oauth.Source {
	t.Helper()
	config := oauth.Config{ServerID: "crm", URL: w.url()}
	if change != nil {
		change(&config)
	}
	options := &oauth.Options{Store: oauth.StoreIn(t, directory), Principal: "ada"}
	if c != nil {
		options.Now = c.Now
	}
	s, err := oauth.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signed returns the Authorization header that the source gives a request.
func signed(t *testing.T, s *oauth.Source, address string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Bind().Sign(t.Context(), request)
	return request.Header.Get("Authorization"), err
}

// C-082, C-084, C-085
func TestSigningIn(t *testing.T) {
	w := newWorld(t)
	directory := t.TempDir()
	s := source(t, w, directory, nil, nil)
	if header, err := signed(t, s, w.url()); header != "" || err != nil {
		t.Errorf("before: got %q, %v, want a request as it is", header, err)
	}
	p := &person{}
	got, err := s.Login(t.Context(), p, []string{"write"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Resource != w.url() || got.Issuer != w.issuer.URL || !got.Renews ||
		!slices.Equal(got.Scopes, []string{"read", "write"}) {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(p.page, "You can close this window") {
		t.Errorf("the browser shows %q", p.page)
	}
	asked := w.asked[0]
	for name, want := range map[string]string{"response_type": "code", "code_challenge_method": "S256",
		"resource": w.url(), "client_id": "client-of-airlock", "scope": "read write"} {
		if asked.Get(name) != want {
			t.Errorf("%s: got %q, want %q", name, asked.Get(name), want)
		}
	}
	if len(asked.Get("state")) < 40 || !strings.HasPrefix(asked.Get("redirect_uri"), "http://127.0.0.1:") ||
		!strings.Contains(asked.Get("redirect_uri"), "/callback/") {
		t.Errorf("got %v", asked)
	}
	if w.forms[0].Get("resource") != w.url() {
		t.Errorf("the token request has the resource %q, want %q", w.forms[0].Get("resource"), w.url())
	}
	for _, again := range []*oauth.Source{s, source(t, w, directory, nil, nil)} { // the second as after a restart
		if header, err := signed(t, again, w.url()); header != "Bearer access-token-1" || err != nil {
			t.Errorf("afterwards: got %q, %v", header, err)
		}
		if header, err := signed(t, again, "https://elsewhere.example/mcp"); header != "" || err != nil {
			t.Errorf("another origin: got %q, %v, want no token", header, err)
		}
	}
}

func TestASignInBelongsToOnePrincipalAndServer(t *testing.T) {
	w := newWorld(t)
	directory := t.TempDir()
	if _, err := source(t, w, directory, nil, nil).Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	options := &oauth.Options{Store: oauth.StoreIn(t, directory), Principal: "bob"}
	for name, c := range map[string]oauth.Config{
		"another principal": {ServerID: "crm", URL: w.url()},
		"another server":    {ServerID: "erp", URL: w.url()},
		"another address":   {ServerID: "crm", URL: w.resource.URL + "/other"},
	} {
		if name != "another principal" {
			options.Principal = "ada"
		}
		other, err := oauth.New(c, options)
		if err != nil {
			t.Fatal(err)
		}
		if header, err := signed(t, other, c.URL); header != "" || err != nil {
			t.Errorf("%s: got %q, %v, want no token", name, header, err)
		}
		options.Principal = "bob"
	}
}

func TestSignInsThatAreRefused(t *testing.T) {
	set := func(name string, value any) func(map[string]any) {
		return func(d map[string]any) { d[name] = value }
	}
	without := func(name string) func(map[string]any) { return func(d map[string]any) { delete(d, name) } }
	tests := []struct {
		name   string
		path   string
		change func(map[string]any)
		want   string
		asked  bool // the person is
	}{
		{"the metadata are another resource's", prmPath, set("resource", "https://evil.example/mcp"),
			"another resource", false},
		{"the metadata are those of a longer path", prmPath,
			func(d map[string]any) { d["resource"] = d["resource"].(string) + "/more" }, "another resource", false},
		{"the metadata are the whole origin's, but lie below it", prmPath,
			func(d map[string]any) { d["resource"] = strings.TrimSuffix(d["resource"].(string), "/mcp") },
			"another resource", false},
		{"the metadata name no authorization server", prmPath, without("authorization_servers"),
			"no authorization server", false},
		{"the authorization server is not reached by https", prmPath,
			set("authorization_servers", []string{"http://auth.example"}), "not an https address", false},
		{"the authorization server is a script", prmPath, set("authorization_servers", []string{"javascript:alert(1)"}),
			"cannot be", false},
		{"the authorization server says to be another", asPath, set("issuer", "https://evil.example"), "those of",
			false},
		{"the authorization server has no PKCE", asPath, without("code_challenge_methods_supported"), "PKCE", false},
		{"the authorization server has plain PKCE only", asPath,
			set("code_challenge_methods_supported", []string{"plain"}), "PKCE", false},
		{"the token endpoint is not reached by https", asPath, set("token_endpoint", "http://tokens.example/"),
			"not an https address", false},
		{"the user is sent to a script", asPath, set("authorization_endpoint", "javascript:alert(1)"), "cannot be",
			false},
		{"no client is registered", asPath, without("registration_endpoint"), "servers.crm.oauth.clientId", false},
		{"the client gets no ID", "/register", without("client_id"), "without a client ID", false},
		{"the client gets a method without a secret", "/register",
			set("token_endpoint_auth_method", "client_secret_basic"), "no secret", false},
		{"the answer names another issuer", "/authorize", set("iss", "https://evil.example"),
			"no code is sent to either", true},
		{"the answer names the issuer with a slash", "/authorize",
			func(d map[string]any) { d["iss"] = d["iss"].(string) + "/" }, "no code is sent to either", true},
		{"the answer names no issuer", "/authorize", without("iss"), "does not say that it comes from", true},
		{"the answer has no code", "/authorize", without("code"), "no code", true},
		{"the user says no", "/authorize", func(d map[string]any) { delete(d, "code"); d["error"] = "access_denied" },
			"the sign-in was refused", true},
		{"the token is of another type", tokenPath, set("token_type", "mac"), "of the type", true},
		{"the token breaks a header", tokenPath, set("access_token", "a\r\nX-Evil: 1"), "HTTP cannot carry", true},
		{"there is no token", tokenPath, without("access_token"), "other than a token", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.change[test.path] = test.change
			s := source(t, w, t.TempDir(), nil, nil)
			p := &person{}
			_, err := s.Login(t.Context(), p, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if got := len(p.seen) == 1; got != test.asked {
				t.Errorf("the person was asked: %t, want %t", got, test.asked)
			}
			if strings.HasPrefix(test.path, "/authorize") && w.count(tokenPath) > 0 {
				t.Error("a code was sent to the token endpoint")
			}
			if state, err := s.State(); err != nil || state.IsSignedIn {
				t.Errorf("got %+v, %v, want no sign-in", state, err)
			}
		})
	}
}

// A page that is open in the same browser can send requests to the port.
func TestStrangeAnswersEndNothing(t *testing.T) {
	w := newWorld(t)
	s := source(t, w, t.TempDir(), nil, nil)
	p := &person{}
	p.invite = func(i oauth.Invitation) error {
		asked, err := url.Parse(i.Address)
		if err != nil {
			return err
		}
		back, state := asked.Query().Get("redirect_uri"), asked.Query().Get("state")
		strange := []struct {
			method, address, host string
			status                int
		}{
			{"GET", back + "?code=x&state=guess", "", 400},
			{"GET", back + "?code=x", "", 400},
			{"GET", back + "?error=access_denied", "", 400},
			{"GET", back + "?code=x&code=y&state=" + state, "", 400},
			{"POST", back + "?code=x&state=" + state, "", 404},
			{"GET", strings.Replace(back, "/callback", "/callback/", 1) + "?code=x&state=" + state, "", 404},
			{"GET", strings.Replace(back, "/callback", "/", 1) + "?next=https://evil.example", "", 404},
			{"GET", back + "?code=x&state=" + state, "evil.example", 404}, // DNS rebinding
		}
		for _, r := range strange {
			request, err := http.NewRequest(r.method, r.address, nil)
			if err != nil {
				return err
			}
			request.Host = r.host
			response, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				return err
			}
			page, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != r.status || response.Header.Get("Location") != "" ||
				strings.Contains(string(page), "evil") {
				t.Errorf("%s %s: got %d %q, %v, want %d", r.method, r.address, response.StatusCode, page, err, r.status)
			}
			response.Body.Close()
		}
		stays := &http.Client{CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}
		consented, err := stays.Get(i.Address)
		if err != nil {
			return err
		}
		consented.Body.Close()
		answer := consented.Header.Get("Location")
		for _, want := range []int{200, 410} { // the second is a replay of the code
			response, err := stays.Get(answer)
			if err != nil {
				return err
			}
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("%s: got %d, want %d", answer, response.StatusCode, want)
			}
		}
		return nil
	}
	if _, err := s.Login(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if n := w.count(tokenPath); n != 1 {
		t.Errorf("got %d token requests, want 1", n)
	}
}

// On a machine without a browser the person copies the address of the last page.
func TestPastedAnswers(t *testing.T) {
	w := newWorld(t)
	s := source(t, w, t.TempDir(), nil, nil)
	answer := make(chan string, 1)
	p := &person{}
	p.invite = func(i oauth.Invitation) error {
		noRedirects := &http.Client{CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}
		response, err := noRedirects.Get(i.Address)
		if err != nil {
			return err
		}
		answer <- response.Header.Get("Location")
		return response.Body.Close()
	}
	texts := []string{"", "no address", "https://evil.example/callback?code=x"}
	p.paste = func(ctx context.Context) (string, error) {
		if len(texts) > 0 {
			text := texts[0]
			texts = texts[1:]
			return text, nil
		}
		select {
		case text := <-answer:
			return " " + text + "\n", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if _, err := s.Login(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if p.strange != 3 {
		t.Errorf("got %d strange answers, want 3", p.strange)
	}
}

func TestNoOneSignsIn(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := &person{invite: func(oauth.Invitation) error { cancel(); return nil }}
	if _, err := source(t, w, t.TempDir(), nil, nil).Login(ctx, p, nil); err == nil ||
		!strings.Contains(err.Error(), "the sign-in was not completed") {
		t.Errorf("got %v", err)
	}
}

// A client that Airlock registered is used again, at the same authorization server alone.
func TestRegistrations(t *testing.T) {
	w := newWorld(t)
	s := source(t, w, t.TempDir(), nil, nil)
	for range 2 {
		if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.count("/register"); n != 1 {
		t.Errorf("got %d registrations, want 1", n)
	}
	other := newWorld(t)
	other.change["/register"] = func(d map[string]any) { d["client_id"] = "client-elsewhere" }
	w.change[prmPath] = func(d map[string]any) { d["authorization_servers"] = []string{other.issuer.URL} }
	if _, err := s.Login(t.Context(), &person{}, nil); err != nil {
		t.Fatal(err)
	}
	if got := other.asked[0].Get("client_id"); got != "client-elsewhere" {
		t.Errorf("got the client %q at the other authorization server", got)
	}
}

func TestConfiguredClients(t *testing.T) {
	tests := []struct {
		name   string
		change func(*oauth.Config)
		server map[string]any // in the metadata
		want   string         // client_id
	}{
		{"a client ID", func(c *oauth.Config) { c.ClientID = "mine" }, nil, "mine"},
		{"a document", func(c *oauth.Config) { c.ClientDocument = "https://me.example/client.json" },
			map[string]any{"client_id_metadata_document_supported": true}, "https://me.example/client.json"},
		{"a document that the server does not take",
			func(c *oauth.Config) { c.ClientDocument = "https://me.example/client.json" }, nil, "client-of-airlock"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.change[asPath] = func(d map[string]any) {
				for name, value := range test.server {
					d[name] = value
				}
			}
			if _, err := source(t, w, t.TempDir(), nil, test.change).Login(t.Context(), &person{}, nil); err != nil {
				t.Fatal(err)
			}
			if got := w.asked[0].Get("client_id"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
